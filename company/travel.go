package company

import "github.com/selvage-mesh/selvage/ledger"

// What an export does with the rows of a company. Every table is listed once: its rows
// travel, are derived from others, or stay behind for a reason that the export reports.

// A StayingKind is a kind of row that no package contains, and the reason.
type StayingKind struct {
	Kind   string
	Reason string
	Tables []string
}

// A LeftBehind counts the rows of a kind that stay behind.
type LeftBehind struct {
	Kind   string
	Count  int
	Reason string
}

// Travelling are the tables whose rows a complete export contains.
var Travelling = []string{
	"company", "agent", "agent-instructions", "agent-skills", "memory", "goal", "project", "workspace", "budget", "label",
	"folder", "user-secret-definition",
	"issue", "comment", "document", "annotation", "attachment", "work-product", "watchdog",
	"routine", "routine-trigger", "skill", "skill-comment", "skill-test-input", "skill-test",
}

// Derived are the tables that are derived from others, or only count or reserve.
var Derived = []string{
	"issue-said", "issue-index", "part", "part-total", "memory-use", "agent-clock", "tree-hold-count", "asset",
	"budget-resume", "memory-count", "memory-change", "memory-like", "memory-linking",
	"decision-count", "decision-same", "governance-permit-for", "tree-policies",
}

// Staying are all other tables. The API shows Kind: do not rename.
var Staying = []StayingKind{
	{"secrets", "Values of secrets never leave the mesh; what refers to them travels as a declaration.",
		[]string{"secret", "secret-version", "secret-access"}},
	{"members", "People and what they may do belong to the instance.", []string{"member"}},
	{"invites", "Invites are credentials.", []string{"invite", "join-request"}},
	{"agent_keys", "Keys are credentials; an imported agent gets its own.", []string{"agent-key"}},
	{"config_revisions", "Going back to one would restore commands and paths of machines, which do not travel; an " +
		"imported agent begins with its configuration as it is.", []string{"agent-revision"}},
	{"document_revisions", "A document travels with its latest text.", []string{"document-revision"}},
	{"routine_revisions", "An imported routine begins as it is.", []string{"routine-revision"}},
	{"skill_versions", "An imported skill begins as it is.", []string{"skill-version"}},
	{"approvals", "What was decided is history of the company that decided; the strategies that its board has approved " +
		"travel.", []string{"approval", "approval-draft", "approval-comment"}},
	{"governance_decisions", "What the gate decided is history of the company and of the constitution that decided.",
		[]string{"decision", "governance-waiting", "governance-tally", "governance-permit", "governance-elevation",
			"governance-profile", "governance-receipt", "governance-receipts"}},
	{"governance_places", "How careful a place is belongs to the place.",
		[]string{"governance-place", "governance-filters"}},
	{"execution_decisions", "What was decided is history of the company that decided; the comments that say why travel.",
		[]string{"execution-decision"}},
	{"interactions", "What is asked on an issue is answered where it was asked.", []string{"interaction"}},
	{"decompositions", "The issues that were made of a plan travel; that it was agreed on is history.",
		[]string{"decomposition"}},
	{"recovery_actions", "What waits for somebody waits where work came to a stop.", []string{"recovery-action"}},
	{"tree_holds", "A hold is on work that goes on, and an import brings none.", []string{"tree-hold"}},
	{"budget_incidents", "Money is counted where it was spent.", []string{"budget-incident"}},
	{"costs", "Money is counted where it was spent: what a package brings could forge or hide it.",
		[]string{"cost", "cost-hour", "cost-day", "cost-issue", "finance", "finance-day", "reservation", "allowance"}},
	{"runs", "Runs, their logs and their costs are history.", []string{"run", "wakeup", "placement", "task-session",
		"runtime-state", "routine-run", "run-callback"}},
	{"memories", "What was remembered names the runs, issues and comments that it came from, which do not travel under " +
		"their names; closed issues leave it anew.", []string{"memory-record"}},
	{"topics", "Messages of topics are of the moment: processes of this mesh read them, at heights of this chain.",
		[]string{"topic", "topic-message", "topic-subscription", "topic-total"}},
	{"cron", "The kernel's jobs publish to topics, which do not travel.", []string{"cron"}},
	{"messages", "Messages wait for an agent that is at work.", []string{"message"}},
	{"live_workspaces", "Working trees are on nodes, and paths of machines do not travel.",
		[]string{"exec-workspace", "workspace-op", "runtime-service"}},
	{"environments", "Machines and how they are reached belong to the place.", []string{"environment"}},
	{"apps", "An app is signed, and installed again where it is to work; its agents, skills and routines travel as " +
		"others do.", []string{"app", "app_hook"}},
	{"push_hooks", "A webhook is told of one task, by whom asked for it; its client asks again.", []string{"push-hook"}},
	{"tools", "A tool is signed for one mesh; deploy it again.", []string{"tool"}},
	{"models", "How models are reached and what they cost belongs to the instance.",
		[]string{"model-provider", "model-price", "memory-embedding"}},
	{"personal_views", "What people have read, put away, ordered, joined and voted on is theirs.",
		[]string{"issue-read", "issue-archive", "inbox-dismissal", "sidebar", "resource-membership", "issue-vote"}},
}

// LeftBehindOf counts the rows of a company that no package contains, each kind up to
// limit. The exporter's warnings name further single rows that stay behind.
func LeftBehindOf(tx *ledger.Tx, company ledger.CompanyID, limit int) (out []LeftBehind) {
	for _, kind := range Staying {
		n := 0
		for _, table := range kind.Tables {
			n = min(n+rowsIn(tx, company, table, limit), limit)
		}
		if n > 0 {
			out = append(out, LeftBehind{kind.Kind, n, kind.Reason})
		}
	}
	return out
}

func rowsIn(tx *ledger.Tx, company ledger.CompanyID, table string, limit int) (n int) {
	for range tx.Prefix(ledger.Key("c", string(company), table, "")) {
		if n++; n == limit {
			break
		}
	}
	return n
}
