# Adds up the company's issues and money, writes it on its own issue, and sends it by webhook or mail. Works without a
# model; needs curl.
set -u
api() { # METHOD PATH [BODY]
  curl -sS --fail-with-body --max-time 30 -X "$1" -H "Authorization: Bearer $PAPERCLIP_API_KEY" -H "X-Paperclip-Run-Id: $PAPERCLIP_RUN_ID" \
    -H 'Content-Type: application/json' ${3:+-d "$3"} "$PAPERCLIP_API_URL$2"
}
json() { printf '%s' "$1" | tr -d '\000-\010\013-\037' | sed 's/\\/\\\\/g; s/"/\\"/g' | awk '{ printf "%s%s", s, $0; s = "\\n" }'; }
of=/api/companies/$PAPERCLIP_COMPANY_ID
[ -z "${PAPERCLIP_TASK_ID:-}" ] || api POST "/api/issues/$PAPERCLIP_TASK_ID/checkout" \
  "{\"agentId\":\"$PAPERCLIP_AGENT_ID\",\"expectedStatuses\":[\"todo\",\"backlog\",\"blocked\",\"in_progress\"]}" >/dev/null || exit 1
text="Report of $(date -u +%F)"
for status in done in_progress in_review blocked todo; do
  list=$(api GET "$of/issues?status=$status&sortField=updatedAt&sortDir=desc&limit=500") || exit 1
  n=$(printf '%s' "$list" | grep -o '"identifier":"[^"]*"' | wc -l)
  text="$text

$status: $n"
  text="$text$(printf '%s' "$list" | grep -o '"title":"\([^"\\]\|\\.\)*"' | head -n 5 | sed 's/^"title":"//; s/"$//; s/\\"/"/g; s/^/\n- /' | sed '/^$/d' | awk '{ printf "\n%s", $0 }')"
done
spent=$(api GET "$of/costs/summary" | grep -o '"spendCents":[0-9]*' | head -n 1 | cut -d: -f2)
text="$text

spent this month: ${spent:-0} cents"
echo "$text"
sent=''
if [ -n "${WEBHOOK:-}" ]; then
  curl -sS --fail --max-time 60 --retry 3 -H 'Content-Type: application/json' -d "{\"companyId\":\"$PAPERCLIP_COMPANY_ID\",\"text\":\"$(json "$text")\"}" -o /dev/null -- "$WEBHOOK" || exit 1
  sent='by webhook'
fi
if [ -n "${SMTP:-}" ] && [ -n "${MAIL:-}" ]; then
  printf 'From: %s\r\nTo: %s\r\nSubject: Nightly report\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n%s\r\n' "$MAIL" "$MAIL" "$text" |
    curl -sS --fail --max-time 60 --mail-from "$MAIL" --mail-rcpt "$MAIL" -T - -K - <<CONFIG || exit 1
url = "$SMTP"
CONFIG
  sent="$sent by mail"
fi
[ -z "${PAPERCLIP_TASK_ID:-}" ] ||
  api PATCH "/api/issues/$PAPERCLIP_TASK_ID" "{\"status\":\"done\",\"comment\":\"$(json "$text

Sent ${sent:-to nobody: neither a webhook nor a mail server is set}.")\"}" >/dev/null
