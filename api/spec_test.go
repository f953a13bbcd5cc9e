package api_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/file"
	"github.com/selvage-mesh/selvage/company/inbox"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/company/secret"
	"github.com/selvage-mesh/selvage/ledger"
)

// Each index that the specification asks for is a family of keys. A row brings
// its key, a change of the row moves it, and a unique index refuses the second.
//
// It would catch an index that is written on creation only (the row's old key
// stays, and lists show it twice or in the wrong place), and a unique name that
// two commands can both take.
func TestSpec_7_13_RequiredIndexes(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	of := ledger.CompanyID(h.Company("Acme"))
	in := "/api/companies/" + string(of)
	post := func(path, body string, status int) apitest.Answer {
		t.Helper()
		return h.Call("POST", path, body).Want(t, status, "")
	}
	id := func(path, body string) string { t.Helper(); return post(path, body, 201).Field(t, "id") }
	patch := func(path, body string) { t.Helper(); h.Call("PATCH", path, body).Want(t, 200, "") }
	agent := func(name string) string {
		t.Helper()
		return id(in+"/agents", fmt.Sprintf(`{"name":%q,"role":"engineer","adapterType":"process"}`, name))
	}
	// Keys that hold the order of time are looked for by their ends.
	at := func(when string) string {
		t.Helper()
		v, err := inbox.ParseTime(when)
		if err != nil {
			t.Fatal(err)
		}
		return ledger.Order(uint64(v))
	}

	boss, ada := agent("Boss"), agent("Ada")
	issue, parent := h.IssueOf(of, "Survey"), h.IssueOf(of, "Parent")
	project := id(in+"/projects", `{"name":"Rig"}`)
	cost := func(when string) string {
		return id(in+"/cost-events", `{"agentId":"`+ada+`","provider":"x","model":"y","costCents":1,"occurredAt":"`+when+`"}`)
	}
	const early, late = "2026-11-20T03:00:00.000Z", "2026-11-20T04:00:00.000Z"
	var approval, secret, asset, attached string
	file := func(path, body string) apitest.Answer {
		t.Helper()
		form, ct := apitest.FormOf(t, "a.png", "image/png", append(apitest.Dot(), body...))
		return h.Call("POST", path, form, ct).Want(t, 201, "")
	}
	none := func() string { return "" }
	listed := 0
	for _, x := range []struct {
		index, family string
		// first brings a row and second changes it, or brings another; both return
		// the end of a key that is there then, or beginning*end. Only one of them is there at a time
		// when moves is set.
		first, second func() string
		moves         bool
		// again does what a unique index refuses.
		again func() apitest.Answer
	}{
		{"agents(company_id, status)", "agent-status", func() string { return "idle/" + ada },
			func() string { post("/api/agents/"+ada+"/pause", "", 200); return "paused/" + ada }, true, nil},
		{"agents(company_id, reports_to)", "agent-manager", func() string { return "root/" + ada },
			func() string { patch("/api/agents/"+ada, `{"reportsTo":"`+boss+`"}`); return boss + "/" + ada }, true, nil},
		{"issues(company_id, status)", "issue-status", func() string { return "todo/*." + issue },
			func() string {
				patch("/api/issues/"+issue, `{"status":"blocked","unblockDescriptor":{"owner":"board","action":"say"}}`)
				return "blocked/*." + issue
			}, true, nil},
		{"issues(company_id, assignee_agent_id, status)", "issue-assignee", func() string {
			patch("/api/issues/"+issue, `{"assigneeAgentId":"`+boss+`"}`)
			return boss + ".blocked/" + issue
		},
			func() string { patch("/api/issues/"+issue, `{"status":"todo"}`); return boss + ".todo/" + issue }, true, nil},
		{"issues(company_id, parent_id)", "issue-parent", none,
			func() string { patch("/api/issues/"+issue, `{"parentId":"`+parent+`"}`); return parent + "/" + issue }, false, nil},
		{"issues(company_id, project_id)", "issue-project", none,
			func() string {
				patch("/api/issues/"+issue, `{"projectId":"`+project+`"}`)
				return project + "/" + issue
			}, false, nil},
		{"cost_events(company_id, occurred_at)", "cost", func() string { return at(late) + "." + cost(late) },
			func() string { return at(early) + "." + cost(early) }, false, nil},
		{"cost_events(company_id, agent_id, occurred_at)", "cost-agent", func() string {
			return ada + "/" + at(late) + "." +
				cost(late)
		},
			func() string { return ada + "/" + at(early) + "." + cost(early) }, false, nil},
		{"heartbeat_runs(company_id, agent_id, started_at desc)", "run-agent", none,
			func() string {
				return boss + "/*." + post("/api/agents/"+boss+"/heartbeat/invoke", "{}", 202).Field(t, "id")
			}, false, nil},
		{"approvals(company_id, status, type)", "approval-status-type",
			func() string {
				approval = id(in+"/approvals", `{"type":"request_board_approval","payload":{"title":"May I?"}}`)
				return "pending.request_board_approval/*." + approval
			},
			func() string {
				post("/api/approvals/"+approval+"/reject", "{}", 200)
				return "rejected.request_board_approval/*." + approval
			}, true, nil},
		{"activity_log(company_id, created_at desc)", "~act", none,
			func() string {
				h.Call("POST", in+"/labels", `{"name":"bug","color":"#ff0000"}`).Want(t, 201, "")
				height, _ := h.Node.Ledger.Head()
				return ledger.Order(height)
			}, false, nil},
		{"assets(company_id, created_at desc)", "asset-created",
			func() string { asset = file(in+"/assets/images", "").Field(t, "assetId"); return "/" + asset }, none, false, nil},
		{"assets(company_id, object_key) unique", "asset-object", none,
			func() string {
				sum := sha256.Sum256([]byte(file(in+"/assets/images", "2").Field(t, "objectKey")))
				return hex.EncodeToString(sum[:])
			}, false, nil},
		{"issue_attachments(company_id, issue_id)", "attachment-issue",
			func() string {
				attached = file(in+"/issues/"+issue+"/attachments", "a file").Field(t, "id")
				return issue + "/" + attached
			},
			func() string { h.Call("DELETE", "/api/attachments/"+attached, "").Want(t, 200, ""); return "" }, true, nil},
		{"company_secrets(company_id, name) unique", "secret-name",
			func() string {
				secret = id(in+"/secrets", `{"name":"One","value":"canary-value"}`)
				return "One/" + secret
			},
			func() string { patch("/api/secrets/"+secret, `{"name":"Two"}`); return "Two/" + secret }, true,
			func() apitest.Answer {
				return h.Call("POST", in+"/secrets", `{"name":"Two","key":"other","value":"canary-value"}`)
			}},
		{"company_secret_versions(secret_id, version) unique", "secret-version",
			func() string { return secret + "." + ledger.Order(1) },
			func() string {
				post("/api/secrets/"+secret+"/rotate", `{"value":"canary-two"}`, 200)
				return secret + "." + ledger.Order(2)
			}, false, nil},
	} {
		has := func(end string) bool {
			return slices.ContainsFunc(h.Family(of, x.family), func(k string) bool {
				begin, end, _ := strings.Cut(end, "*")
				if end == "" {
					return strings.HasSuffix(k, begin)
				}
				return strings.HasPrefix(k, begin) && strings.HasSuffix(k, end)
			})
		}
		listed++
		first := x.first()
		if first != "" && !has(first) {
			t.Fatalf("%s: %s has no key that ends in %q: %v", x.index, x.family, first, h.Family(of, x.family))
		}
		second := x.second()
		if second != "" && !has(second) {
			t.Errorf("%s: %s has no key that ends in %q after the change: %v", x.index, x.family, second, h.Family(of, x.family))
		}
		if x.moves && has(first) {
			t.Errorf("%s: %s still has %q after the change: %v", x.index, x.family, first, h.Family(of, x.family))
		}
		if x.again != nil {
			before := len(h.Family(of, x.family))
			x.again().Want(t, 409, "Secret already exists: Two")
			if n := len(h.Family(of, x.family)); n != before {
				t.Errorf("%s: a refused row left keys: %d, then %d", x.index, before, n)
			}
		}
		t.Logf("%-55s c/<company>/%s/", x.index, x.family)
	}
	if listed != 16 {
		t.Errorf("%d indexes, the specification lists 16", listed)
	}
}

// What is to be there once is refused the second time, by whatever command.
//
// It would catch a uniqueness that the API alone looks after: two nodes that
// take the same name at once would both have it.
func TestSpec_7_13_UniqueKeysRefuseTheSecond(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	of := ledger.CompanyID(h.Company("Acme"))
	issue := h.IssueOf(of, "Survey")
	ada := h.Call("POST", "/api/companies/"+string(of)+"/agents",
		`{"name":"Ada","role":"engineer","adapterType":"process"}`).Want(t, 201, "").Field(t, "id")
	hash := strings.Repeat("ab", 32)
	theFile := company.NewFile{Object: api.NewID(), Name: "a.txt", ContentType: "text/plain", Size: 1,
		SHA256: strings.Repeat("cd", 32), Nodes: []string{string(h.Node.Keys.ID())}}
	named := func(id string) company.NewFile { f := theFile; f.ID = id; return f }
	for _, c := range []struct {
		what, kind string
		row        func(id string) any
	}{
		{"agent key hash", "agent_key.create", func(id string) any {
			return people.CreateKey{ID: id, Agent: ada, Name: "k " +
				id, Hash: hash}
		}},
		{"label name", "label.create", func(id string) any {
			return company.CreateLabel{ID: id, Name: "bug",
				Color: "#ff0000"}
		}},
		{"secret name", "secret.create", func(id string) any {
			return secret.SaveSecret{ID: id, Name: "ONE", Key: "k" + id, Sealed: make([]byte, 64)}
		}},
		{"secret key", "secret.create", func(id string) any {
			return secret.SaveSecret{ID: id, Name: "n" + id, Key: "same", Sealed: make([]byte, 64)}
		}},
		{"object key", "asset.create", func(id string) any { return file.CreateAsset{File: named(id)} }},
	} {
		outcomes := []string{}
		for range 2 {
			r, err := h.Node.Submit(t.Context(), ledger.Command{Kind: c.kind, Company: of, Actor: ledger.Actor{Type: "user",
				ID: api.LocalBoard},
				Credential: ledger.Credential{Kind: "local"}, Payload: ledger.Marshal(c.row(api.NewID()))})
			switch {
			case err != nil:
				t.Fatal(c.what, err)
			case r.Refusal == nil:
				outcomes = append(outcomes, "taken")
			default:
				outcomes = append(outcomes, string(r.Refusal.Code))
			}
		}
		if want := []string{"taken", string(ledger.Conflict)}; !slices.Equal(outcomes, want) {
			t.Errorf("%s twice: %v, want %v", c.what, outcomes, want)
		}
	}
	// A version of a secret is added by its number: the same number twice is refused.
	theSecret := h.Call("POST", "/api/companies/"+string(of)+"/secrets", `{"name":"TWO","value":"canary-value"}`).
		Want(t, 201, "").Field(t, "id")
	for i, want := range []bool{true, false} {
		r, err := h.Node.Submit(t.Context(), ledger.Command{Kind: "secret.rotate", Company: of,
			Actor:      ledger.Actor{Type: "user", ID: api.LocalBoard},
			Credential: ledger.Credential{Kind: "local"}, Payload: ledger.Marshal(secret.RotateSecret{ID: theSecret, Version: 2,
				Sealed: make([]byte, 64)})})
		if err != nil || (r.Refusal == nil) != want {
			t.Errorf("version 2, time %d: %v %v", i+1, err, r.Refusal)
		}
	}
	// Documents of an issue have one row a key: the second writer must say which revision it saw.
	doc := "/api/issues/" + issue + "/documents/plan"
	h.Call("PUT", doc, `{"title":"Plan","format":"markdown","body":"one"}`).Want(t, 201, "")
	h.Call("PUT", doc, `{"title":"Plan","format":"markdown","body":"two"}`).
		Want(t, 409, "Document update requires baseRevisionId")
	// Companies whose names begin alike have prefixes of their own.
	seen := map[string]bool{}
	for range 4 {
		prefix := h.Call("POST", "/api/companies", `{"name":"Acme"}`).Want(t, 201, "").Field(t, "issuePrefix")
		if seen[prefix] {
			t.Errorf("two companies have the prefix %s", prefix)
		}
		seen[prefix] = true
	}
}
