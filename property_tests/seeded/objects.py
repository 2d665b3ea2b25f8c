"""Defects of the store on objects: what an answer proves, whose an upload is, what is swept."""

# ruff: noqa: E501 - a snippet is compared more easily if its lines are not broken

from __future__ import annotations

from property_tests.seeded.mutant import Mutant

_PUBLISH = "filesink/storage/objects/publish.py"
_STORE = "filesink/storage/objects/store.py"
_PROBE = "filesink/storage/objects/probe.py"

OBJECTS = (
    Mutant(
        "an upload is completed over whatever stands there",
        _PUBLISH,
        "_TRIES = (Condition.IF_ABSENT, Condition.IF_ABSENT, Condition.ALWAYS)",
        "_TRIES = (Condition.ALWAYS, Condition.ALWAYS, Condition.ALWAYS)",
    ),
    Mutant(
        "an object of the right length counts as ours",
        _PUBLISH,
        "    return found is not None and (found.token, found.size) == (staged.token, staged.size)",
        "    return found is not None and found.size == staged.size",
    ),
    Mutant(
        "an upload that is gone counts as completed",
        _PUBLISH,
        "            if _settled(bucket, upload):\n                return\n",
        "            if error.code == 'NO_UPLOAD' or _settled(bucket, upload):\n                return\n",
    ),
    Mutant(
        "an upload that is gone counts as lost without a look",
        _PUBLISH,
        "            if _settled(bucket, upload):\n                return\n",
        "            if error.code == 'NO_UPLOAD':\n                raise _lost(bucket, upload) from error\n            if _settled(bucket, upload):\n                return\n",
    ),
    Mutant(
        "an error of a completion counts as done",
        _PUBLISH,
        "            if _settled(bucket, upload):\n                return\n",
        "            if error.code == 'UNAVAILABLE' or _settled(bucket, upload):\n                return\n",
    ),
    Mutant(
        "an upload that could not be completed is aborted",
        _PUBLISH,
        "            if error.code != RACE or number == len(_TRIES):\n                raise\n",
        "            if error.code != RACE or number == len(_TRIES):\n                bucket.objects.abort(key, upload.upload_id)\n                raise\n",
    ),
    Mutant(
        "a key is looked at once only",
        _PUBLISH,
        "    bucket.clock.sleep(_SECOND_LOOK)\n    if _is_ours(bucket, upload):\n        return True\n    raise _lost(bucket, upload)\n",
        "    raise _lost(bucket, upload)\n",
    ),
    Mutant(
        "the parts of an upload are not compared",
        _PUBLISH,
        "    return (\n        parts is not None\n        and {",
        "    return parts is not None or (\n        parts is not None\n        and {",
    ),
    Mutant(
        "an object that was made by another counts as this driver's",
        _PUBLISH,
        "return PutResult.CREATED if standing.token == token else PutResult.EXISTS",
        "return PutResult.CREATED",
    ),
    Mutant(
        "a put without an answer counts as not done",
        _PUBLISH,
        "            if error.code == UNAVAILABLE:\n                raise _unknown(bucket, path, error.message) from error\n",
        "",
    ),
    Mutant(
        "a put without an answer counts as done",
        _PUBLISH,
        "            if error.code == UNAVAILABLE:\n                raise _unknown(bucket, path, error.message) from error\n",
        "            if error.code == UNAVAILABLE:\n                return PutResult.CREATED\n",
    ),
    Mutant(
        "a put is not conditional",
        _PUBLISH,
        "token=token, condition=_allowed(bucket, Condition.IF_ABSENT))",
        "token=token, condition=Condition.ALWAYS)",
    ),
    Mutant(
        "the sweep sees one page of uploads only",
        _STORE,
        "            for each in uploads:\n",
        "            for each in uploads[:1]:\n",
    ),
    Mutant(
        "the sweep sees no uploads",
        _STORE,
        "            for each in uploads:\n",
        "            for each in ():\n",
    ),
    Mutant(
        "the sweep takes uploads of other sinks",
        "filesink/naming.py",
        '    return UploadName(target=target, upload_id=upload_id, tag=found[0]["tag"], slot=slot)\n',
        '    return UploadName(target=target, upload_id=upload_id, tag="a6e655f2", slot=0)\n',
    ),
    Mutant(
        "uploads of held files are never swept",
        "filesink/naming.py",
        "    if hidden is not None:\n        return UploadName(",
        "    if hidden is None is not None:\n        return UploadName(",
    ),
    Mutant(
        "probes that died leave their uploads for ever",
        _PROBE,
        "        if upload.begun_ms < oldest:\n",
        "        if upload.begun_ms < 0:\n",
    ),
    Mutant(
        "a rule that aborts uploads soon is ignored",
        _PROBE,
        "made.abort_ms < bucket.clock.now_ms() + _LEAST_LIFE_MS",
        "made.abort_ms < bucket.clock.now_ms()",
    ),
    Mutant(
        "the probe of a start stays in the bucket",
        _PROBE,
        "        removal = _removed(uploads.bucket, path)\n",
        "        removal = Removal.ALLOWED\n",
    ),
)
