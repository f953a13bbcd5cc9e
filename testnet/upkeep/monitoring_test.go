package upkeep

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/node"
	"github.com/selvage-mesh/selvage/testnet/testkit"
)

var write = flag.Bool("metrics.write", false, "write docs/metrics.md")

const (
	rules     = "../../deploy/monitoring/selvage.rules.yaml"
	rulesTest = "../../deploy/monitoring/rules_test.yaml"
	sample    = "../../deploy/monitoring/prometheus.yaml"
	dashboard = "../../deploy/monitoring/dashboard.json"
	page      = "../../docs/metrics.md"
)

// Three nodes do work that costs money, fails and waits. Their figures say so; the page
// lists them all; and a real Prometheus that scrapes the nodes has a series for all that
// the alerts and the dashboard ask for.
func TestMonitoring(t *testing.T) {
	b, w := working(t)
	t.Run("figures", func(t *testing.T) { w.compare(t, b) })
	t.Run("page", func(t *testing.T) { comparePage(t, scrape(t, b, 0)) })
	t.Run("prometheus", func(t *testing.T) { watch(t, b) })
}

// A failing adapter does nothing and fails.
type failing struct{}

func (failing) Invoke(context.Context, company.Invocation) company.Outcome {
	return company.Outcome{Status: entity.RunFailed, ErrorCode: "adapter_failed", Error: "It fails"}
}
func (failing) Status(string) entity.Phase { return entity.PhaseReport }
func (failing) Cancel(string, string)      {}

// A world is what was done, and what the figures must say of it.
type world struct {
	company ledger.CompanyID
}

// working starts a mesh and has it do a bit of everything that has a figure.
func working(t *testing.T) (*testkit.Bed, world) {
	t.Helper()
	dir := t.TempDir()
	b := testkit.Mesh(t, 3, func(i int, c *node.Config) {
		c.Adapters["http"] = failing{}
		if i == 0 {
			to, err := identity.ParseRecipient(identity.FormatRecipient(identity.NewRecipientKey().PublicKey()))
			if err != nil {
				t.Fatal(err)
			}
			c.Backups = node.Backups{Every: time.Hour, Dir: filepath.Join(dir, "backups"), To: []identity.Recipient{to}}
		}
	})
	of := b.Company("Acme")
	post := func(path string, body, out any) {
		b.Must(0, "POST", "/api/companies/"+string(of)+path, body, out, b.Seen()...)
	}
	post("/budgets/policies", map[string]any{"scopeType": "company", "scopeId": of, "windowKind": "calendar_month_utc",
		"amount": 1000}, nil)

	ada := b.Agent(of)
	b.Must(0, "POST", "/api/companies/"+string(of)+"/cost-events", map[string]any{"agentId": ada.ID, "provider": "p",
		"model": "m", "inputTokens": 1, "outputTokens": 1,
		"costCents": 850, "occurredAt": time.Now().UTC().Format("2006-01-02T15:04:05.000Z")}, nil, ada.As(b.Seen()...)...)
	var g money.SpendGrant
	var err error
	b.Until("n2 has a lease and reserves money", func() bool {
		g, err = b.Nodes[1].Purse().Reserve(t.Context(), money.SpendAsk{Company: of, Agent: ada.ID, Want: core.Cents(6)})
		return err == nil
	})

	// Two runs are cancelled, one fails, and one waits for a node that is not there.
	b.Must(0, "POST", "/api/heartbeat-runs/"+ada.Run+"/cancel", map[string]any{}, nil)
	bob := b.Agent(of)
	b.Must(0, "POST", "/api/agents/"+bob.ID+"/pause", map[string]any{}, nil)
	cyd, err := b.Hire(0, of, "Cyd", nil)
	if err != nil {
		t.Fatal(err)
	}
	b.Must(0, "PATCH", "/api/agents/"+cyd.ID,
		map[string]any{"runtimeConfig": map[string]any{"placement": map[string]any{"labels": []string{"attic"}}}}, nil,
		b.Seen()...)
	b.Must(0, "POST", "/api/agents/"+cyd.ID+"/heartbeat/invoke", map[string]any{}, nil, b.Seen()...)
	var eve struct{ ID string }
	post("/agents", map[string]any{"name": "Eve", "adapterType": "http",
		"adapterConfig": map[string]any{"url": "http://127.0.0.1:9/"}}, &eve)
	b.Must(0, "POST", "/api/agents/"+eve.ID+"/heartbeat/invoke", map[string]any{}, nil, b.Seen()...)
	if _, err := b.Nodes[0].BackupNow(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.Heads()
	if g.Amount == 0 {
		t.Error("nothing was granted")
	}
	return b, world{of}
}

// A series is one line of a scrape.
type series struct {
	name   string
	labels map[string]string
	value  float64
}

// A scraped is what /metrics of a node said.
type scraped struct {
	help, kind map[string]string // by name
	all        []series
}

var (
	line = regexp.MustCompile(`^([a-z_:0-9]+)(?:\{(.*)\})? (\S+)$`)
	pair = regexp.MustCompile(`([a-z_]+)="((?:[^"\\]|\\.)*)"`)
)

func scrape(t *testing.T, b *testkit.Bed, on int) scraped {
	t.Helper()
	out := scraped{map[string]string{}, map[string]string{}, nil}
	for l := range strings.Lines(string(b.Must(on, "GET", "/metrics", nil, nil).Body)) {
		l = strings.TrimSuffix(l, "\n")
		if f := strings.SplitN(l, " ", 4); len(f) == 4 && f[0] == "#" {
			map[string]map[string]string{"HELP": out.help, "TYPE": out.kind}[f[1]][f[2]] = f[3]
			continue
		}
		m := line.FindStringSubmatch(l)
		if m == nil {
			t.Fatalf("/metrics has the line %q", l)
		}
		s := series{m[1], map[string]string{}, 0}
		for _, p := range pair.FindAllStringSubmatch(m[2], -1) {
			s.labels[p[1]] = p[2]
		}
		var err error
		if s.value, err = strconv.ParseFloat(m[3], 64); err != nil {
			t.Fatal(err)
		}
		out.all = append(out.all, s)
	}
	return out
}

// value returns the value of the series with a name and labels.
func (s scraped) value(name string, labels ...string) (float64, bool) {
	for _, one := range s.all {
		fits := one.name == name
		for i := 0; i+1 < len(labels); i += 2 {
			fits = fits && one.labels[labels[i]] == labels[i+1]
		}
		if fits {
			return one.value, true
		}
	}
	return 0, false
}

// held is what the nodes' purses have, in cents.
func held(b *testkit.Bed) (sum float64) {
	for _, n := range b.Nodes {
		for _, s := range n.Purse().Stocks() {
			sum += float64(s.Amount) / float64(core.Cent)
		}
	}
	return sum
}

// compare holds the figures of every node to what was done.
func (w world) compare(t *testing.T, b *testkit.Bed) {
	type want struct {
		name   string
		labels []string
		value  float64
	}
	company := []string{"company", string(w.company)}
	wants := []want{
		{"selvage_company_spent_cents", company, 850},
		{"selvage_company_budget_cents", company, 1000},
		{"selvage_company_budget_incidents", append([]string{"threshold", "soft"}, company...), 1},
		{"selvage_company_budget_incidents", append([]string{"threshold", "hard"}, company...), 0},
		{"selvage_runs_ended_total", []string{"outcome", "cancelled"}, 2},
		{"selvage_runs_ended_total", []string{"outcome", "failed"}, 1},
		{"selvage_runs", []string{"state", "queued"}, 1},
		{"selvage_runs", []string{"state", "running"}, 0},
		{"selvage_members", []string{"state", "alive"}, 3},
		{"selvage_members", []string{"state", "dead"}, 0},
		{"selvage_quorum", nil, 1},
		{"selvage_nodes_lost_total", nil, 0},
		{"selvage_lease_losses_total", nil, 0},
		{"selvage_ledger_lag_entries", nil, 0},
	}
	for on := range b.Nodes {
		for _, want := range wants {
			var got float64
			found := false
			b.Until(fmt.Sprintf("n%d says %s %v is %v", on+1, want.name, want.labels, want.value), func() bool {
				got, found = scrape(t, b, on).value(want.name, want.labels...)
				return found && got == want.value
			})
		}
		// What the node took to pay from is at least what one call may cost.
		b.Until(fmt.Sprintf("n%d says what is reserved", on+1), func() bool {
			got, _ := scrape(t, b, on).value("selvage_company_reserved_cents", company...)
			return got > 0 && got == held(b)
		})
		if v, ok := scrape(t, b, on).value("selvage_run_queue_oldest_seconds"); !ok || v <= 0 {
			t.Errorf("n%d: the oldest queued run has waited %v s", on+1, v)
		}
	}
	silent := 0
	for on, n := range b.Nodes {
		v, _ := scrape(t, b, on).value("selvage_raft_silence_seconds")
		if n.IsLeader() && v > 0.5 || v > 30 {
			silent++
		}
	}
	if silent > 0 {
		t.Errorf("%d of the nodes say that they do not hear the leader", silent)
	}
}

const pageHead = `<!-- Written by make metrics from what a node answers; do not edit. -->

# Metrics

Every node answers ` + "`GET /metrics`" +
	` for Prometheus. Who may read it: [operations](operations.md#how-it-stands). Three kinds of figures:

- **of the node**: each node has its own value. Sum them, or look at each.
- **of the mesh**: ` + "`selvage_runs`, `selvage_company_*`, `selvage_members`, `selvage_feature_level`" +
	` are read from the replicated state.
  All nodes that are up to date say the same: take the ` + "`max`" + `.
- **counted from the chain**: ` + "`selvage_runs_ended_total` and `selvage_nodes_lost_total`" +
	` count entries that the node applied since it was
  started. All nodes count the same entries: take the ` + "`max`" + ` of the rates.

A company is named by its ID, never by its name. Beyond 200 companies, the newest are summed up as ` + "`other`" + `.

[deploy/monitoring](../deploy/monitoring) has a scrape configuration, alert rules with a case for each, and a ` +
	`dashboard for Grafana.
A test scrapes three nodes with a real Prometheus and asks it for all of them.

    selvage_ledger_applied_index    # how far a node is; the mesh is at max(selvage_raft_commit_index)
    selvage_raft_silence_seconds    # how long it has not heard the leader

## Figures

` + "`go_*` and `process_*`" + ` are those of Go's Prometheus client: memory, processor, files, the collector.

| metric | kind | labels | what it says |
|---|---|---|---|
`

const pageAlerts = `
## Alerts

| alert | severity | fires when |
|---|---|---|
`

// pageOf writes docs/metrics.md.
func pageOf(t *testing.T, s scraped) string {
	t.Helper()
	var out strings.Builder
	out.WriteString(pageHead)
	for _, name := range slices.Sorted(maps.Keys(s.kind)) {
		if !strings.HasPrefix(name, "selvage_") {
			continue
		}
		labels := map[string]bool{}
		for _, one := range s.all {
			base := one.name
			if s.kind[name] == "histogram" {
				base = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(base, "_bucket"), "_count"), "_sum")
			}
			if base == name {
				for l := range one.labels {
					labels[l] = true
				}
			}
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", name, s.kind[name], strings.Join(slices.Sorted(maps.Keys(labels)),
			", "), strings.TrimSuffix(s.help[name], "."))
	}
	out.WriteString(pageAlerts)
	text, err := os.ReadFile(rules)
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(string(text), "- alert: ")[1:] {
		name, rest, _ := strings.Cut(block, "\n")
		after := func(key string) string {
			_, v, _ := strings.Cut(rest, key)
			return v
		}
		severity, _, _ := strings.Cut(after("severity: "), "}")
		summary, _, _ := strings.Cut(after(`summary: "`), `"}`)
		summary = strings.NewReplacer("{{ $labels.instance }}", "the node", "{{ $labels.company }}", "X",
			"{{ $value | humanizeDuration }}", "too long", "{{ $value | humanize1024 }}B", "less than 2 GiB", "{{ $value }}",
			"many").Replace(summary)
		fmt.Fprintf(&out, "| %s | %s | %s |\n", name, severity, summary)
	}
	return out.String()
}

// comparePage fails when the page is not what the node says.
func comparePage(t *testing.T, s scraped) {
	want := pageOf(t, s)
	if *write {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil || string(got) != want {
		t.Errorf("%s is not what a node says (%v): run make metrics", page, err)
	}
}

// program returns a program of Prometheus.
func program(t *testing.T, name string) string {
	t.Helper()
	path, _ := filepath.Abs("../../.cache/prometheus/" + name)
	if _, err := os.Stat(path); err != nil {
		t.Skip("Prometheus is not there; `make system` fetches it (needs apt-get)")
	}
	return path
}

// A prometheus is one that scrapes a mesh.
type prometheus struct {
	t  *testing.T
	at string
}

// get asks its API, until it answers, and returns the member data.
func (p prometheus) get(path string, query url.Values, data any) {
	p.t.Helper()
	last := ""
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		res, err := http.Get(p.at + path + "?" + query.Encode())
		if err != nil {
			last = err.Error()
			continue
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		last = string(body)
		if err == nil && res.StatusCode == 200 {
			if err := json.Unmarshal(body, &struct{ Data any }{data}); err != nil {
				p.t.Fatalf("%s: %v", last, err)
			}
			return
		}
		if res.StatusCode == 400 || res.StatusCode == 422 {
			break
		}
	}
	p.t.Fatalf("Prometheus, asked for %s %v: %s", path, query, last)
}

// series returns how many an expression has now.
func (p prometheus) series(expr string) int {
	p.t.Helper()
	var v struct {
		ResultType string
		Result     []any
	}
	p.get("/api/v1/query", url.Values{"query": {expr}}, &v)
	return len(v.Result)
}

// has waits until an expression has a series.
func (p prometheus) has(what, expr string) {
	p.t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); p.series(expr) == 0; time.Sleep(500 * time.Millisecond) {
		if time.Now().After(deadline) {
			p.t.Errorf("%s: Prometheus has no series for %s", what, expr)
			return
		}
	}
}

// start has Prometheus scrape the nodes and read the rules.
func start(t *testing.T, b *testkit.Bed) prometheus {
	t.Helper()
	dir := t.TempDir()
	rulesPath, err := filepath.Abs(rules)
	if err != nil {
		t.Fatal(err)
	}
	var targets []string
	for _, n := range b.Nodes {
		targets = append(targets, strconv.Quote(n.HTTPAddr()))
	}
	conf := fmt.Sprintf("global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [%q]\n"+
		"scrape_configs:\n  - job_name: selvage\n    static_configs: [{targets: [%s]}]\n", rulesPath,
		strings.Join(targets, ", "))
	path := filepath.Join(dir, "prometheus.yaml")
	if err := os.WriteFile(path, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program(t, "prometheus"), "--config.file="+path,
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+addr, "--log.level=warn")
	log := &strings.Builder{}
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = cmd.Wait()
		if t.Failed() {
			fmt.Fprintf(os.Stderr, "%s, Prometheus said:\n%s\n", t.Name(), log)
		}
	})
	return prometheus{t, "http://" + addr}
}

// metric is the name of one of ours in an expression.
var metric = regexp.MustCompile(`\b(?:selvage_[a-z_]+|up)\b`)

// watch has a real Prometheus read the rules and the dashboard.
func watch(t *testing.T, b *testkit.Bed) {
	promtool := program(t, "promtool")
	for _, args := range [][]string{{"check", "config", "--syntax-only", sample}, {"check", "rules", rules},
		{"test", "rules", rulesTest}} {
		if out, err := exec.Command(promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	p := start(t, b)
	p.has("the mesh", fmt.Sprintf("sum(up) == %d", len(b.Nodes)))
	cases, err := os.ReadFile(rulesTest)
	if err != nil {
		t.Fatal(err)
	}
	var all struct {
		Groups []struct {
			Rules []struct{ Name, Query, Health string }
		}
	}
	p.get("/api/v1/rules", nil, &all)
	alerts := 0
	for _, g := range all.Groups {
		for _, r := range g.Rules {
			alerts++
			if !strings.Contains(string(cases), "alertname: "+r.Name+"\n") {
				t.Errorf("rules_test.yaml has no case for %s", r.Name)
			}
			for _, name := range metric.FindAllString(r.Query, -1) {
				p.has(r.Name, name)
			}
		}
	}
	if alerts < 10 {
		t.Errorf("Prometheus read %d alerts", alerts)
	}
	for name, expr := range variablesOf(t) {
		p.has("variable "+name, expr)
	}
	panels := 0
	for title, exprs := range panelsOf(t) {
		panels++
		for _, expr := range exprs {
			p.has("panel "+title, expr)
		}
	}
	if panels < 20 {
		t.Errorf("the dashboard has %d panels", panels)
	}
	// What is well fires nothing but for what this mesh is: its runs wait, and its company
	// has spent most of its budget, which is no alert below 90 %.
	var firing struct {
		Alerts []struct {
			State  string
			Labels map[string]string
		}
	}
	p.get("/api/v1/alerts", nil, &firing)
	for _, a := range firing.Alerts {
		if a.State == "firing" {
			t.Errorf("%s fires", a.Labels["alertname"])
		}
	}
}

// labelValues is the question of a variable whose values are those of a label.
var labelValues = regexp.MustCompile(`^label_values\(([a-z_]+), ([a-z]+)\)$`)

// variablesOf returns an expression for each variable of the dashboard: it has series where the variable has values.
func variablesOf(t *testing.T) map[string]string {
	t.Helper()
	b, err := os.ReadFile(dashboard)
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Templating struct {
			List []struct {
				Name, Type string
				Query      json.RawMessage
			}
		}
	}
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	known, out := map[string]bool{}, map[string]string{}
	for _, v := range d.Templating.List {
		known[v.Name] = true
		if v.Type != "query" {
			continue
		}
		var q struct{ Query string }
		if err := json.Unmarshal(v.Query, &q); err != nil {
			t.Fatalf("variable %s: %v", v.Name, err)
		}
		m := labelValues.FindStringSubmatch(q.Query)
		if m == nil {
			t.Fatalf("variable %s asks %q: want label_values(METRIC, LABEL)", v.Name, q.Query)
		}
		out[v.Name] = fmt.Sprintf(`%s{%s!=""}`, m[1], m[2])
	}
	for _, used := range regexp.MustCompile(`\$\{?([a-z]+)`).FindAllSubmatch(b, -1) {
		if !known[string(used[1])] {
			t.Errorf("the dashboard uses the variable %s, which it does not have", used[0])
		}
	}
	return out
}

// panelsOf returns the expressions of the dashboard's panels, by their titles.
func panelsOf(t *testing.T) map[string][]string {
	t.Helper()
	b, err := os.ReadFile(dashboard)
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Panels []struct {
			Title, Type string
			Targets     []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for _, p := range d.Panels {
		if p.Type == "row" {
			continue
		}
		if len(p.Targets) == 0 || out[p.Title] != nil {
			t.Errorf("panel %q asks nothing, or is there twice", p.Title)
		}
		for _, one := range p.Targets {
			out[p.Title] = append(out[p.Title], strings.ReplaceAll(one.Expr, "$job", "selvage"))
		}
	}
	return out
}
