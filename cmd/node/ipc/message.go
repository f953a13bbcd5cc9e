package ipc

import "github.com/selvage-mesh/selvage/cmd/node/cli"

const (
	ipcPath      = "/api/v1/ipc"
	messageTable = "ID=id FROM=from KIND=payload.kind TEXT=payload.text REPLY=wants_reply RELIABLE=reliable " +
		"ATTEMPT=attempt"
)

var (
	asProcess = cli.Field{Name: "process", Member: "process", Kind: "int", Query: true,
		About: "PID on the node that is asked: as this process (an administrator)"}
	onNode    = cli.Field{Name: "node", Member: "node", Query: true, About: "name or ID of the node"}
	asJSON    = cli.Field{Name: "json", Member: "json", Kind: "json", About: "instead of TEXT, or a file with it"}
	asPayload = cli.Field{Name: "payload", Member: "payload", Kind: "json",
		About: "instead of TEXT: an object with kind, such as {\"kind\":\"signal\",\"signal\":{\"kind\":\"ping\"}}"}
	waitField = cli.Field{Name: "wait-ms", Member: "wait_ms", Kind: "int",
		About: "how long to wait, in ms; 5000 unless given"}
)

// messageVerbs are the rows of selvage ipc.
var messageVerbs = []cli.Verb{
	{Use: "send TO [TEXT]", Short: "Send a message to a process, a name, a group, a service, a topic or a node",
		Method: "POST", Path: ipcPath + "/send", Says: "{state} {id}",
		Long: "Send a message. TO is a PID, NODE:PID, name:NAME, group:GROUP, service:NAME/METHOD, topic:TOPIC, " +
			"broadcast or kernel.\n\n" +
			"A process sends as itself (SELVAGE_API_KEY, which it was started with), an administrator as the " +
			"node. A plain message waits for room\n" +
			"in the inbox of its receiver; a reliable one is sent again until its receiver acknowledges it, a " +
			"durable one also after a restart.",
		Example: "  selvage ipc send n2:12 hello\n  selvage ipc send name:worker --json '{\"job\":7}' --reliable " +
			"--await\n  selvage ipc send 12 --payload '{\"kind\":\"signal\",\"signal\":{\"kind\":\"shutdown\"}}'",
		Fields: []cli.Field{{Place: 1, Member: "to"}, {Place: 2, Member: "text"}, asJSON, asPayload, waitField,
			{Name: "reliable", Member: "reliable", Kind: "bool", About: "send again until it is acknowledged"},
			{Name: "durable", Member: "durable", Kind: "bool", About: "reliable, and survives a restart of the node"},
			{Name: "keep-seconds", Member: "keep_seconds", Kind: "int",
				About: "how long a durable message is tried; a day unless given"},
			{Name: "await", Member: "await", Kind: "bool", About: "wait until it is acknowledged"},
			{Name: "id", Member: "id", About: "of a reliable message: sent twice, it is delivered once"},
			{Name: "trace", Member: "trace_id", About: "ID of a trace"}, asProcess}},
	{Use: "request TO [TEXT]", Short: "Send a request and print its reply", Method: "POST", Path: ipcPath + "/request",
		Says: "{payload.text}",
		Example: "  selvage ipc request name:worker 'how far?' --wait-ms 2000\n" +
			"  selvage ipc request kernel@n2 --payload '{\"kind\":\"signal\",\"signal\":{\"kind\":\"dump_state\"}}' -o json",
		Fields: []cli.Field{{Place: 1, Member: "to"}, {Place: 2, Member: "text"}, asJSON, asPayload, waitField,
			{Name: "trace", Member: "trace_id", About: "ID of a trace"}, asProcess}},
	{Use: "recv", Short: "Receive the next messages", Also: []string{"receive"}, Method: "POST", Path: ipcPath +
		"/receive", Rows: "messages", Columns: messageTable,
		Example: "  selvage ipc recv --wait-ms 30000 -o json     # in a process\n" +
			"  selvage ipc recv --process 12 --limit 1      # an administrator, for process 12",
		Fields: []cli.Field{{Name: "limit", Member: "limit", Kind: "int", About: "at most so many"},
			{Name: "wait-ms", Member: "wait_ms", Kind: "int", About: "how long to wait for the first, in ms"}, asProcess}},
	{Use: "ack ID", Short: "Acknowledge a reliable message: it is handled", Method: "POST", Path: ipcPath +
		"/messages/{1}/ack", Says: "acknowledged", Fields: []cli.Field{asProcess}},
	{Use: "reply ID [TEXT]", Short: "Reply to a request", Method: "POST", Path: ipcPath + "/messages/{1}/reply",
		Says: "replied", Fields: []cli.Field{{Place: 2, Member: "text"}, asJSON, asPayload, asProcess}},
	{Use: "subscribe PATTERN", Short: "Subscribe an inbox to topics: their messages arrive like others", Method: "POST",
		Path: ipcPath + "/subscriptions", Says: "{id} {pattern} from #{position} on",
		Long: "Subscribe the inbox of a process to the topics that PATTERN selects, where * is any one level and " +
			"** at the end all levels.\n\n" +
			"It ends with the process. With --name the mesh remembers how far was read: each message is to be " +
			"acknowledged, and the next\n" +
			"process that subscribes by this name, on any node, goes on after the last one that was.",
		Example: "  selvage ipc subscribe 'build.*'                    # in a process\n" +
			"  selvage ipc subscribe 'orders/**' --name billing --from 1",
		Fields: []cli.Field{{Place: 1, Member: "pattern"}, {Name: "name", Member: "name", About: "makes it last"},
			{Name: "from", Member: "from", Kind: "int",
				About: "height of the first message; what is published next unless given"}, asProcess}},
	{Use: "subscriptions", Short: "List what inboxes of the node are subscribed to", Path: ipcPath + "/subscriptions",
		Rows: "subscriptions", Columns: "ID=id PROCESS=process PATTERN=pattern NAME=name POSITION=position",
		Fields: []cli.Field{asProcess}},
	{Use: "unsubscribe ID", Short: "End a subscription of an inbox", Method: "DELETE", Path: ipcPath +
		"/subscriptions/{1}", Says: "unsubscribed", Fields: []cli.Field{asProcess}},
	{Use: "link TO",
		Short:  "Link a process to another: when one crashes, or its node is lost, the other is told and ended",
		Method: "POST", Path: ipcPath + "/links", Says: "linked to {1}",
		Example: "  selvage ipc link 14                  # in a process: its parent, a child, or one of its " +
			"group\n  selvage ipc link 14 --process 12     # an administrator links any two",
		Fields: []cli.Field{{Place: 1, Member: "to"}, asProcess}},
	{Use: "unlink TO", Short: "End a link", Method: "DELETE", Path: ipcPath + "/links/{1}",
		Says: "unlinked from {1}", Fields: []cli.Field{asProcess}},
	{Use: "monitor TO", Short: "Have a process told, by a signal, when another ends, or its node is lost", Method: "POST",
		Path: ipcPath + "/monitors", Says: "{ref}", Fields: []cli.Field{{Place: 1, Member: "to"}, asProcess}},
	{Use: "demonitor ID", Short: "End a monitor", Method: "DELETE", Path: ipcPath + "/monitors/{1}", Says: "ended",
		Fields: []cli.Field{asProcess}},
	{Use: "inbox", Short: "Show how the inboxes of a node stand", Path: ipcPath + "/inboxes", Rows: "inboxes",
		Columns: "PROCESS=address QUEUED=queued TAKEN=taken WAITING=waiting CREDITS=credits BYTES=bytes",
		Fields:  []cli.Field{onNode}},
	{Use: "outbox", Short: "List the reliable messages of a node that were not acknowledged", Path: ipcPath + "/outbox",
		Rows: "messages", Columns: "ID=message.id TO=message.to ATTEMPTS=attempts NEXT=next_attempt WHY=why",
		Fields: []cli.Field{onNode}},
	{Use: "dead", Short: "List the messages that a node could not deliver, and why", Path: ipcPath + "/dead-letters",
		Rows:    "dead_letters",
		Columns: "NUMBER=number AT=at REASON=reason TO=message.to FROM=message.from ID=message.id DETAIL=detail",
		Next:    "to send them again: selvage ipc replay", Fields: []cli.Field{onNode, {Name: "after", Member: "after",
			Kind: "int", Query: true, About: "only above this number"}, {Name: "limit", Member: "limit", Kind: "int",
			Query: true, About: "at most so many"}}},
	{Use: "replay", Short: "Send dead letters of a node again", Method: "POST", Path: ipcPath + "/dead-letters/replay",
		Says: "sent {sent}, failed {failed}",
		Fields: []cli.Field{{Name: "reason", Member: "reason", About: "only of this reason"}, {Name: "limit", Member: "limit",
			Kind: "int", About: "at most so many"}, onNode}},
	{Use: "purge", Short: "Delete the dead letters of a node", Method: "DELETE", Path: ipcPath + "/dead-letters",
		Says: "deleted {deleted}", Fields: []cli.Field{onNode}},
}
