"""Google Cloud Storage: its JSON API, spoken over the authenticated session of Google's own library.

May use ``storage.objects`` and the ground. Only ``session`` and ``errors`` know google-auth and requests.
"""
