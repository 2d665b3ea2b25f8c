import java.io.File;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/** One namenode and one datanode in a JVM, until standard input ends. */
public final class MiniHdfs {
  public static void main(String[] arguments) throws Exception {
    Configuration settings = new Configuration();
    settings.set("dfs.replication", "1");
    // How long a datanode waits before it asks again whether a file of WebHDFS is closed; by default 400 ms.
    settings.set("dfs.client.block.write.locateFollowingBlock.initial.delay.ms", "10");
    MiniDFSCluster cluster =
        new MiniDFSCluster.Builder(settings, new File(arguments[0])).numDataNodes(1).build();
    cluster.waitActive();
    System.out.println(
        "ports " + cluster.getNameNodePort() + " " + cluster.getNameNode().getHttpAddress().getPort());
    while (System.in.read() != -1) {}
    System.exit(0);
  }
}
