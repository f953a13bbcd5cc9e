# The hook health: after an upgrade, the tools that the app works with have to be there. Its failure takes the upgrade back.
for tool in curl sed sha256sum awk; do
  command -v "$tool" >/dev/null || { echo "$tool is not installed on node $SELVAGE_NODE"; exit 1; }
done
curl -sS --fail --max-time 10 "$SELVAGE_API_URL/healthz" >/dev/null
