#!/bin/sh
# Creates the role and the database of Lumio: an ordinary role that owns its database and nothing else.
set -eu
psql --username "${POSTGRES_USER:-postgres}" --set ON_ERROR_STOP=1 --set password="$LUMIO_PASSWORD" <<'SQL'
create role lumio login password :'password';
create database lumio owner lumio;
SQL
