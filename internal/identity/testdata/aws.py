"""Writes aws.json: tokens of IAM as botocore signs them, the library of AWS for Python (Debian: python3-botocore)."""
import datetime
import itertools
import json
import urllib.parse

import botocore
import botocore.auth
from botocore.credentials import Credentials
from botocore.model import ServiceId
from botocore.signers import RequestSigner
from botocore.hooks import HierarchicalEmitter

events = HierarchicalEmitter()
moments = ["2026-01-01T00:00:00Z", "2026-11-23T21:59:59Z", "2028-02-29T12:34:56Z"]
keys = [
    {"id": "AKIDEXAMPLE", "secret": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "session": ""},
    {"id": "ASIAEXAMPLE", "secret": "a/b+c=d", "session": "IQoJb3JpZ2lu//+/==EXAMPLE~!*'()&x y%"},
]
caches = [
    {"service": "elasticache", "serverless": False, "cluster": "billing", "region": "eu-central-1", "user": "solotick"},
    {"service": "elasticache", "serverless": True, "cluster": "billing-cache", "region": "us-east-1", "user": "solo-tick_1"},
    {"service": "memorydb", "serverless": False, "cluster": "billing", "region": "us-gov-west-1", "user": "solo.tick~ü +1"},
]


def sign(key, cache, moment):
    class Frozen(datetime.datetime):
        @classmethod
        def utcnow(cls):
            return cls.strptime(moment, "%Y-%m-%dT%H:%M:%SZ")

    botocore.auth.datetime.datetime = Frozen
    credentials = Credentials(key["id"], key["secret"], key["session"] or None)
    signer = RequestSigner(ServiceId(cache["service"]), cache["region"], cache["service"], "v4", credentials, events)
    query = {"Action": "connect", "User": cache["user"]}
    if cache["serverless"]:
        query["ResourceType"] = "ServerlessCache"
    url = f"https://{cache['cluster']}/?" + urllib.parse.urlencode(query, quote_via=urllib.parse.quote)
    request = {"method": "GET", "url": url, "body": {}, "headers": {}, "context": {}}
    signed = signer.generate_presigned_url(request, "connect", 900, cache["region"], cache["service"])
    return signed.removeprefix("https://")


vectors = [{"key": k, "cache": c, "moment": m, "token": sign(k, c, m)} for k, c, m in itertools.product(keys, caches, moments)]
with open("aws.json", "w") as f:
    json.dump({"by": "botocore " + botocore.__version__, "vectors": vectors}, f, indent=1)
    f.write("\n")
