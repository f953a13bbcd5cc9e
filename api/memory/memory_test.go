package memory_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/ledger"
)

type desk struct {
	*apitest.Harness
	t           *testing.T
	of          ledger.CompanyID
	ada, bob    string
	asAda, asBo string
}

func newDesk(t *testing.T) *desk {
	h := apitest.NewHarness(t)
	of := ledger.CompanyID(h.Company("Acme"))
	d := &desk{Harness: h, t: t, of: of, ada: h.NewAgent(of, "Ada", "true"), bob: h.NewAgent(of, "Bob", "true")}
	d.asAda, d.asBo = d.bear(d.ada), d.bear(d.bob)
	return d
}

func (d *desk) bear(agent string) string {
	return "Authorization: Bearer " + d.Call("POST", "/api/agents/"+agent+"/keys", `{"name":"k"}`).Want(d.t, 201, "").
		Field(d.t, "token")
}

func (d *desk) add(body string, as ...string) string {
	d.t.Helper()
	if len(as) == 0 {
		body = `{"companyId":"` + string(d.of) + `",` + strings.TrimPrefix(body, "{")
	}
	return d.Call("POST", "/api/v1/memory", body, as...).Want(d.t, 201, `"id"`).Field(d.t, "id")
}

// search returns the texts that were found, in order, and the whole answer.
func (d *desk) search(body string, as ...string) (texts []string, whole map[string]any) {
	d.t.Helper()
	if len(as) == 0 {
		body = `{"companyId":"` + string(d.of) + `",` + strings.TrimPrefix(body, "{")
	}
	whole = d.Call("POST", "/api/v1/memory/search", body, as...).Want(d.t, 200, `"results"`).Decode(d.t).(map[string]any)
	for _, r := range whole["results"].([]any) {
		texts = append(texts, r.(map[string]any)["memory"].(map[string]any)["text"].(string))
	}
	return texts, whole
}

func want(t *testing.T, got []string, texts ...string) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(texts) {
		t.Errorf("found %q, want %q", got, texts)
	}
}

// Memories are added, found with reasons, shown, changed and forgotten.
func TestMemoriesThroughTheAPI(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	blue := d.add(`{"text":"Globex wants all invoices in blue","tags":["customer","globex"],"kind":"fact",` +
		`"importance":300}`)
	d.add(`{"text":"Deployments are frozen on Fridays","kind":"lesson"}`, d.asAda)
	d.add(`{"text":"Die Rechnungen gehen am Monatsende raus"}`)
	texts, whole := d.search(`{"query":"invoice"}`)
	if len(texts) == 0 || texts[0] != "Globex wants all invoices in blue" || whole["considered"] != 3.0 ||
		whole["building"] != nil || whole["height"].(float64) == 0 {
		t.Errorf("found %v", whole)
	}
	why := whole["results"].([]any)[0].(map[string]any)["why"].(map[string]any)
	if why["wordRank"] != 1.0 || why["vectorRank"] != 1.0 || why["cosine"].(float64) <= 0 ||
		len(why["words"].([]any)) != 1 {
		t.Errorf("explained by %v", why)
	}
	texts, _ = d.search(`{"query":"Rechnung","by":"words"}`)
	want(t, texts, "Die Rechnungen gehen am Monatsende raus")
	texts, _ = d.search(`{"query":"\"frozen on fridays\"","by":"words"}`, d.asBo)
	want(t, texts, "Deployments are frozen on Fridays")
	texts, _ = d.search(`{"query":"invoices deployments","by":"words","tags":["globex"],"kinds":["fact"]}`)
	want(t, texts, "Globex wants all invoices in blue")
	d.Call("GET", "/api/v1/memory/"+blue, "").Want(t, 200, `"tags":["customer","globex"]`)
	d.Call("PATCH", "/api/v1/memory/"+blue,
		`{"text":"Globex wants all invoices in red","expiresAt":"2999-01-01T00:00:00Z"}`).
		Want(t, 200, `"expiresAt":"2999-01-01T00:00:00.000Z"`)
	texts, _ = d.search(`{"query":"blue","by":"words"}`)
	want(t, texts)
	texts, _ = d.search(`{"query":"red","by":"words"}`)
	want(t, texts, "Globex wants all invoices in red")
	d.Call("GET", "/api/v1/memory/stats?companyId="+string(d.of), "").Want(t, 200, `"memories":3`).
		Want(t, 200, `"indexed":3`)

	d.Call("DELETE", "/api/v1/memory/"+blue, "", d.asBo).Want(t, 403, "Only the board, its author")
	d.Call("DELETE", "/api/v1/memory/"+blue, "").Want(t, 200, `"forgotten":true`)
	d.Call("GET", "/api/v1/memory/"+blue, "").Want(t, 404, "Memory record not found")
	d.Call("DELETE", "/api/v1/memory/"+blue, "").Want(t, 404, "Memory record not found")
	texts, _ = d.search(`{"query":"red","by":"words"}`)
	want(t, texts)
}

// Memories are listed without a search, the newest first, in parts, and only to who reads them.
func TestMemoriesAreListed(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for n := range 7 {
		d.add(fmt.Sprintf(`{"text":"sounding %d","kind":"fact","tags":["t%d"]}`, n, n%2))
	}
	d.add(`{"text":"only Ada knows","private":true}`, d.asAda)
	list := func(query string, as ...string) (texts []string, whole map[string]any) {
		if len(as) == 0 {
			query += "&companyId=" + string(d.of)
		}
		whole = d.Call("GET", "/api/v1/memory?"+query, "", as...).Want(t, 200, `"memories"`).Decode(t).(map[string]any)
		for _, m := range whole["memories"].([]any) {
			texts = append(texts, m.(map[string]any)["text"].(string))
		}
		return texts, whole
	}
	texts, whole := list("limit=3")
	want(t, texts, "only Ada knows", "sounding 6", "sounding 5")
	if whole["total"] != 8.0 || whole["next"] == nil {
		t.Errorf("listed %v", whole)
	}
	texts, whole = list("limit=5&after=" + whole["next"].(string))
	want(t, texts, "sounding 4", "sounding 3", "sounding 2", "sounding 1", "sounding 0")
	if whole["next"] != nil {
		t.Errorf("after the last there is %v", whole["next"])
	}
	texts, _ = list("kind=fact&tag=t1")
	want(t, texts, "sounding 5", "sounding 3", "sounding 1")
	texts, whole = list("limit=1", d.asBo)
	want(t, texts, "sounding 6")
	if whole["total"] != 7.0 {
		t.Errorf("Bob is told of %v memories", whole["total"])
	}
	texts, _ = list("agentId="+d.ada, d.asAda)
	want(t, texts, "only Ada knows")
	d.Call("GET", "/api/v1/memory?limit=x&companyId="+string(d.of), "").Want(t, 400, "limit")
	d.Call("GET", "/api/v1/memory?after=nothing", "", d.asBo).Want(t, 400, "after")
	d.Call("GET", "/api/v1/memory", "").Want(t, 400, "companyId")
}

// What was forgotten stands nowhere in the store, and the chain is whole.
func TestForgottenTextsLeaveTheStore(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.add(`{"text":"the canary sings at dawn"}`, d.asAda)
	d.Call("PATCH", "/api/v1/memory/"+id, `{"text":"the canary sings at dusk"}`, d.asAda).Want(t, 200, "")
	if n := d.inStore("canary sings"); n == 0 {
		t.Fatal("the store is not looked through")
	}
	d.Call("DELETE", "/api/v1/memory/"+id, "", d.asAda).Want(t, 200, "")
	if n := d.inStore("canary sings"); n > 0 {
		t.Errorf("%d values of the store have the forgotten text", n)
	}
	d.Call("POST", "/api/v1/mesh/ledger/verify", "").Want(t, 200, `"ok":true`)
}

// An agent finds what its company shares and what is its own, and nothing else is counted.
func TestWhoFindsMemories(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	shared := d.add(`{"text":"the vault code is in the safe"}`)
	private := d.add(`{"text":"the vault code is 1234","private":true}`, d.asAda)
	other := ledger.CompanyID(d.Company("Globex"))
	eve := d.bear(d.NewAgent(other, "Eve", "true"))
	theirs := d.Call("POST", "/api/v1/memory", `{"text":"the vault code of Globex"}`, eve).Want(t, 201, "").Field(t, "id")

	for who, c := range map[string]struct {
		as   []string
		seen float64
	}{"ada": {[]string{d.asAda}, 2}, "bob": {[]string{d.asBo}, 1}, "eve": {[]string{eve}, 1}, "the board": {nil, 2}} {
		texts, whole := d.search(`{"query":"vault code"}`, c.as...)
		if float64(len(texts)) != c.seen || whole["considered"] != c.seen {
			t.Errorf("%s finds %q of %v, want %v", who, texts, whole["considered"], c.seen)
		}
	}
	for _, call := range []struct{ method, id, as string }{{"GET", private, d.asBo}, {"DELETE", private, d.asBo},
		{"GET", theirs, d.asAda}, {"DELETE", theirs, d.asAda},
		{"GET", shared, eve}, {"GET", private, eve}} {
		d.Call(call.method, "/api/v1/memory/"+call.id, "", call.as).Want(t, 404, "Memory record not found")
	}
	d.Call("PATCH", "/api/v1/memory/"+private, `{"text":"x"}`, d.asBo).Want(t, 404, "Memory record not found")
	d.Call("POST", "/api/v1/memory/search", `{"query":"x","companyId":"`+string(other)+`"}`, d.asAda).
		Want(t, 404, "Company not found")
	d.Call("POST", "/api/v1/memory", `{"text":"x","companyId":"`+string(other)+`"}`, d.asAda).
		Want(t, 404, "Company not found")
	d.Call("POST", "/api/v1/memory", `{"text":"x","agentId":"`+d.ada+`"}`, d.asBo).Want(t, 403, "agentId")
	d.Call("GET", "/api/v1/memory/stats", "", d.asBo).Want(t, 200, `"memories":1`)
	d.Call("GET", "/api/v1/memory/stats", "", d.asAda).Want(t, 200, `"memories":2`)
}

// What can not be remembered or searched for is refused by name.
func TestBadMemoriesAndSearches(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	zeros := "[" + strings.TrimSuffix(strings.Repeat("0,", 16), ",") + "]"
	tags := strings.TrimSuffix(strings.Repeat(`"t",`, 1000), ",")
	for _, c := range []struct{ path, body, says string }{
		{"", `{"text":""}`, "text"}, {"", `{}`, "text"}, {"", `{"text":"` + strings.Repeat("x", 1<<19) + `"}`, "text"},
		{"", `{"text":"a\u0000b"}`, "text"}, {"", `{"text":"a\u0007b"}`, "text: has a control character"},
		{"", `{"text":"?!"}`, "text: needs"},
		{"", `{"text":"x","tags":[` + tags + `]}`, "tags"}, {"", `{"text":"x","tags":[" t"]}`, "tags"},
		{"", `{"text":"x","importance":1001}`, "importance"},
		{"", `{"text":"x","kind":"No"}`, "kind"}, {"", `{"text":"x","vector":[1,2,3],"model":"m"}`, "vector: needs"},
		{"", `{"text":"x","vector":` + zeros + `,"model":"m"}`, "vector: all components"},
		{"", `{"text":"x","vector":[1e99,0,0,0,0,0,0,0],"model":"m"}`, "vector: a component is not"},
		{"", `{"text":"x","vector":["NaN"],"model":"m"}`, "vector"},
		{"", `{"text":"x","vector":[1,0,0,0,0,0,0,0]}`, "model and vector"}, {"", `{"text":"x","private":true}`, "private"},
		{"", `{"text":"x","expiresAt":"1999-01-01T00:00:00Z"}`, "expiresAt"},
		{"/search", `{}`, "query"}, {"/search", `{"query":" ? "}`, "query"}, {"/search", `{"query":"x","limit":101}`,
			"limit"}, {"/search", `{"query":"` + strings.Repeat("x", 3000) + `"}`, "query"},
		{"/search", `{"vector":[1,0,0,0,0,0,0,0],"model":"none"}`, "model"},
		{"/search", `{"vector":` + zeros + `}`, "vector"},
	} {
		body := `{"companyId":"` + string(d.of) + `",` + strings.TrimPrefix(c.body, "{")
		a := d.Call("POST", "/api/v1/memory"+c.path, strings.ReplaceAll(body, ",}", "}"))
		if a.Status != 400 && a.Status != 413 && a.Status != 422 || !strings.Contains(string(a.Body), c.says) {
			t.Errorf("%.80s: %d %s, want %s named", c.body, a.Status, a.Body, c.says)
		}
	}
	d.Call("POST", "/api/v1/memory", `{"text":"x"}`).Want(t, 400, "companyId")
	d.Call("GET", "/api/v1/memory/nothing", "").Want(t, 404, "Memory record not found")
	d.Call("GET", "/api/v1/memory/stats?companyId=nothing", "").Want(t, 404, "Company not found")
}

// Many memories about an issue become one: the old ones stay, linked, and are found when
// they are asked for. An agent does so with its own, and with those about the same issue.
func TestManyMemoriesBecomeOne(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	issue := d.Call("POST", "/api/companies/"+string(d.of)+"/issues", `{"title":"Mend the kiln"}`).Want(t, 201, "").
		Field(t, "id")
	about := `,"issueId":"` + issue + `"`
	first, second := d.add(`{"text":"the kiln needs fuse A"`+about+`}`),
		d.add(`{"text":"the kiln needs fuse B"`+about+`}`, d.asBo)
	other, private := d.add(`{"text":"the kiln is in hall 2"}`),
		d.add(`{"text":"the kiln costs 900","private":true`+about+`}`, d.asAda)
	replacing := func(ids ...string) string { return `"replaces":["` + strings.Join(ids, `","`) + `"]` }
	d.Call("POST", "/api/v1/memory", `{"text":"x",`+replacing(first)+`}`, d.asAda).Want(t, 403, "replaces: memory")
	d.Call("POST", "/api/v1/memory", `{"text":"x",`+replacing(other)+about+`}`, d.asAda).
		Want(t, 403, "that has the same issueId")
	d.Call("POST", "/api/v1/memory", `{"text":"x",`+replacing(private)+about+`}`, d.asBo).Want(t, 404, "replaces: memory")
	d.Call("POST", "/api/v1/memory", `{"text":"x",`+replacing(private)+about+`}`, d.asAda).
		Want(t, 400, "is private; add a private one")
	d.Call("POST", "/api/v1/memory", `{"text":"x","private":true,`+replacing(first)+about+`}`, d.asAda).
		Want(t, 400, "is read by others")
	one := d.add(`{"text":"the kiln needs fuses A and B","kind":"lesson",`+replacing(first, second)+about+`}`, d.asAda)
	texts, whole := d.search(`{"query":"fuse","by":"words"}`)
	want(t, texts, "the kiln needs fuses A and B")
	if whole["considered"] != 3.0 {
		t.Errorf("considered are %v", whole["considered"])
	}
	if texts, _ = d.search(`{"query":"fuse","by":"words","replaced":true,"limit":10}`); len(texts) != 3 {
		t.Errorf("with the old ones: %q", texts)
	}
	d.Call("GET", "/api/v1/memory/"+first, "").Want(t, 200, `"replacedBy":"`+one+`"`)
	d.Call("GET", "/api/v1/memory/"+one, "").Want(t, 200, `"replaces":["`)
	d.Call("POST", "/api/v1/memory", `{"text":"x",`+replacing(first)+about+`}`, d.asAda).
		Want(t, 409, "has given its place to "+one)
	d.Call("DELETE", "/api/v1/memory/"+one, "", d.asAda).Want(t, 200, "")
	if texts, _ = d.search(`{"query":"fuse","by":"words"}`); len(texts) != 2 {
		t.Errorf("after the new one is forgotten: %q", texts)
	}
}

// A million tags are refused by name, or as a body that is too large.
func TestAMillionTags(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for tags, says := range map[int]string{17: "tags", 100_000: "tags", 1_000_000: "too large"} {
		body := `{"companyId":"` + string(d.of) + `","text":"x","tags":[` +
			strings.TrimSuffix(strings.Repeat(`"t",`, tags), ",") + `]}`
		a := d.Call("POST", "/api/v1/memory", body)
		if a.Status != 400 && a.Status != 413 && a.Status != 422 || !strings.Contains(strings.ToLower(string(a.Body)), says) {
			t.Errorf("%d tags: %d %.200s, want %s named", tags, a.Status, a.Body, says)
		}
	}
	if _, whole := d.search(`{"query":"x"}`); whole["considered"] != 0.0 {
		t.Errorf("%v memories were added", whole["considered"])
	}
}

// Vectors of an author's own model are compared with those of that model alone.
func TestVectorsOfOnesOwn(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.add(`{"text":"north","model":"m","vector":[1,0,0,0,0,0,0,0]}`)
	d.add(`{"text":"east","model":"m","vector":[0,1,0,0,0,0,0,0.1]}`)
	d.add(`{"text":"words alone"}`)
	texts, whole := d.search(`{"vector":[0.1,1,0,0,0,0,0,0],"model":"m","by":"vectors"}`)
	want(t, texts, "east", "north")
	if whole["model"] != "m" {
		t.Errorf("compared were %v", whole["model"])
	}
	d.Call("POST", "/api/v1/memory",
		`{"companyId":"`+string(d.of)+`","text":"x","model":"m","vector":[1,0,0,0,0,0,0,0,0]}`).
		Want(t, 422, "vector: has 9 components")
}

// inStore counts the values of the state that have a text.
func (d *desk) inStore(text string) (n int) {
	err := d.Node.Ledger.View(func(tx *ledger.Tx) error {
		for _, v := range tx.Scan(nil, nil, false) {
			if strings.Contains(string(v), text) {
				n++
			}
		}
		return nil
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return n
}
