#!/bin/sh
# Candor with curl. GATEWAY_URL names the server, GATEWAY_TOKEN your token if it wants one.
set -eu
url=${GATEWAY_URL:-http://127.0.0.1:8000}

call() {
  curl --silent --show-error --fail-with-body --max-time 120 \
    ${GATEWAY_TOKEN:+--header "Authorization: Bearer $GATEWAY_TOKEN"} \
    --header 'Content-Type: application/json' "$@"
  echo
}

echo "== Is the server ready?"
call "$url/readyz"

echo "== One turn, the whole answer. Without a conversation_id it starts a conversation."
result=$(call "$url/chat" --data '{"message": "list the files"}')
printf '%s\n' "$result"
conversation=$(printf '%s\n' "$result" | sed 's/.*"conversation_id": *"\([^"]*\)".*/\1/')

echo "== The next turn of this conversation, as server-sent events"
call --no-buffer "$url/chat/stream" \
  --data "{\"message\": \"hello\", \"conversation_id\": \"$conversation\"}"

echo "== Its messages"
call "$url/conversations/$conversation/messages"

echo "== What memory knows about files"
call --get "$url/memory/search" --data-urlencode "q=list the files"
