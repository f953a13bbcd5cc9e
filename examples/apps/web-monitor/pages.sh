# The service web-monitor/pages: answers "check" with how a page of $URLS does now, and "ping". It runs as long as the app
# does, and is started again when it ends. Needs curl.
set -u
ipc() { # PATH BODY
  curl -sS --fail-with-body --max-time 60 -X POST -H "Authorization: Bearer $SELVAGE_API_KEY" -H 'Content-Type: application/json' \
    -d "$2" "$SELVAGE_API_URL/api/v1/ipc/$1"
}
reply() { ipc "messages/$1/reply" "{\"json\":$2}" >/dev/null || echo "the reply to $1 was not taken" >&2; }
set -f
while :; do
  got=$(ipc receive '{"limit":1,"wait_ms":25000}') || { echo "$got" >&2; sleep 1; continue; }
  got=$(printf '%s' "$got" | tr -d '\n')
  id=$(printf '%s' "$got" | sed -n 's/^{"messages":\[{"id":"\([A-Za-z0-9-]*\)".*/\1/p')
  [ -n "$id" ] || continue
  method=$(printf '%s' "$got" | sed -n 's/.*"method":"\([a-z]*\)".*/\1/p')
  case $method in
  ping) reply "$id" '{"result":"pong"}'; continue ;;
  check) ;;
  *) reply "$id" '{"error":"no such method"}'; continue ;;
  esac
  page=$(printf '%s' "$got" | sed -n 's/.*"params":{"url":"\([^"\\]*\)"}.*/\1/p')
  known=no
  for url in ${URLS:-$SELVAGE_API_URL/healthz}; do
    case $page in '' | "$url") page=$url known=yes; break ;; esac
  done
  if [ $known = no ]; then
    reply "$id" '{"error":"this page is not one of the setting urls"}'
    continue
  fi
  status=$(curl -sS -L --max-redirs 5 --max-time 8 --max-filesize 10000000 -o /dev/null -w '%{http_code} %{time_total}' -- "$page") ||
    status="0 0"
  code=$(echo "${status%% *}" | sed 's/^0*//')
  reply "$id" "{\"result\":{\"url\":\"$page\",\"status\":${code:-0},\"seconds\":${status#* }}}"
done
