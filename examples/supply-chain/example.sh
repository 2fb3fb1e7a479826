#!/bin/sh
# What Feldera's documentation shows of completion tokens, at Waybill: only the host is another.
#   sh example.sh [http://127.0.0.1:8080]
set -eu
PIPELINE="${1:-${WAYBILL_URL:-http://127.0.0.1:8080}}/v0/pipelines/supply-chain"
CONNECTOR="$PIPELINE/tables/PRICE/connectors/tutorial-price-s3"

token_of() {
    sed -n 's/.*"token" *: *"\([^"]*\)".*/\1/p'
}

echo "1. push three prices, and get the token for them"
pushed=$(curl -sSf -X POST "$PIPELINE/ingress/PRICE?format=json" -d '
{"insert": {"part": 1, "vendor": 2, "price": 10000}}
{"insert": {"part": 2, "vendor": 1, "price": 15000}}
{"insert": {"part": 3, "vendor": 3, "price": 9000}}' | token_of)

echo "2. get the token for what the connector has fetched, when it has fetched all of it"
left=60
until curl -sSf "$CONNECTOR/stats" | grep -q '"end_of_input" *: *true'; do
    left=$((left - 1))
    [ "$left" -gt 0 ] || { echo "it is not fetched: waybill describe supply-chain says why" >&2; exit 1; }
    sleep 1
done
fetched=$(curl -sSf "$CONNECTOR/completion_token" | token_of)

echo "3. ask for both; ?wait= lets Waybill hold the answer until it is final"
for token in "$pushed" "$fetched"; do
    curl -sSf "$PIPELINE/completion_status?token=$token&wait=60"
    echo
done
