#!/bin/sh
# Creates the storage account and the bucket of Lumio, an ordinary account that owns its bucket alone. Runs on every
# start of the stack: an account that exists gets the password of .env, a bucket that exists stays.
set -eu
if versitygw admin list-users | grep -q '^lumio '; then
  versitygw admin update-user --access lumio --secret "$STORAGE_PASSWORD"
else
  versitygw admin create-user --access lumio --secret "$STORAGE_PASSWORD" --role user
fi
if ! versitygw admin list-buckets | grep -q '^lumio-blobs '; then
  versitygw admin create-bucket --owner lumio --bucket lumio-blobs
fi
