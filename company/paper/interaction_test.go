package paper_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/file"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/company/paper"
	"github.com/selvage-mesh/selvage/ledger"
)

func TestAcceptedTasksAreMadeTogether(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	who := companytest.As{Agent: ada, Run: d.Run(ada)}
	i := d.Issue(t, company.CreateIssue{})
	in := d.Asks(t, who, i.ID, paper.SuggestTasks, companytest.FourTasks)
	if in.Status != "pending" || in.Continuation != "wake_assignee" || string(in.CreatedAgent) != ada {
		t.Fatalf("got %+v", in)
	}
	only := func(keys ...string) paper.ResolveInteraction {
		keys = append([]string{}, keys...)
		return paper.ResolveInteraction{Issue: i.ID, ID: in.ID, Tasks: &keys}
	}
	companytest.WantRefusal(t, d.Do(companytest.Board, "interaction.accept", only("b"), nil), ledger.Unprocessable,
		"Task b is chosen without its parent a")
	companytest.WantRefusal(t, d.Do(companytest.Board, "interaction.accept", only("z"), nil), ledger.Unprocessable,
		"Unknown task: z")
	companytest.WantRefusal(t, d.Do(companytest.Board, "interaction.accept", only(), nil), ledger.Unprocessable,
		"No task is chosen; reject the suggestion instead")
	if n := len(slices.Collect(entity.ChildrenOf(d.Tx, d.Company, i.ID))); n != 0 {
		t.Errorf("a refused accept made %d tasks", n)
	}
	companytest.WantRefusal(t, d.Do(companytest.Board, "interaction.answer", paper.ResolveInteraction{Issue: i.ID,
		ID: in.ID}, nil), ledger.Unprocessable, "An interaction of kind suggest_tasks cannot be answered")
	var done paper.Interaction
	d.Must(t, companytest.Board, "interaction.accept", only("a", "b"), &done)
	var result struct {
		CreatedTasks []struct{ ClientKey, IssueID, ParentIssueID string }
		Skipped      []string `json:"skippedClientKeys"`
	}
	if err := json.Unmarshal(done.Result, &result); err != nil || len(result.CreatedTasks) != 2 ||
		!slices.Equal(result.Skipped, []string{"c"}) {
		t.Fatalf("result %s: %v", done.Result, err)
	}
	above, below := d.Load(result.CreatedTasks[0].IssueID), d.Load(result.CreatedTasks[1].IssueID)
	if above.Parent != i.ID || below.Parent != above.ID || below.Depth != i.Depth+2 {
		t.Errorf("made %+v below %+v", below, above)
	}
	companytest.WantRefusal(t, d.Do(companytest.Board, "interaction.accept", only("a"), nil), ledger.Conflict,
		"Interaction has already been resolved")
	companytest.WantRefusal(t, d.Do(companytest.Board, "interaction.reject", only("a"), nil), ledger.Conflict,
		"Interaction has already been resolved")
	if n := len(paper.PendingInteractions(d.Tx, i)); n != 0 {
		t.Errorf("%d still wait", n)
	}
}

func TestWhoAskedIsToldWhatBecameOfIt(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada, bob := d.Agent("Ada"), d.Agent("Bob")
	i := d.Issue(t, company.CreateIssue{Assignee: bob})
	run := d.Run(ada)
	in := d.Asks(t, companytest.As{Agent: ada, Run: run}, i.ID, paper.AskQuestions,
		`{"version":1,"questions":[{"id":"q","prompt":"?","selectionMode":"single","required":true,`+
			`"options":[{"id":"a"},{"id":"b"}]}]}`)
	d.EndRun(run)
	p := paper.ResolveInteraction{Issue: i.ID, ID: in.ID}
	for name, tc := range map[string]struct {
		answers []paper.Answer
		text    string
	}{
		"nothing": {nil, "must be answered"},
		"empty":   {[]paper.Answer{{Question: "q"}}, "must be answered"},
		"unknown": {[]paper.Answer{{Question: "x"}}, "Unknown question"},
		"option":  {[]paper.Answer{{Question: "q", Options: []string{"z"}}}, "no option"},
		"two":     {[]paper.Answer{{Question: "q", Options: []string{"a", "b"}}}, "takes one option"},
		"twice": {[]paper.Answer{{Question: "q", Options: []string{"a"}},
			{Question: "q", Options: []string{"a"}}}, "twice"},
		"one's own": {[]paper.Answer{{Question: "q", Other: "mine"}}, "does not accept free text"},
	} {
		p.Answers = tc.answers
		if err := d.Do(companytest.Board, "interaction.answer", p, nil); err == nil ||
			!strings.Contains(err.Error(), tc.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
	p.Answers = []paper.Answer{{Question: "q", Options: []string{"b"}}}
	d.Must(t, companytest.Board, "interaction.answer", p, nil)
	for _, agent := range []string{ada, bob} {
		live := entity.LiveRunsOfAgent(d.Tx, d.Company, agent)
		if len(live) == 0 || live[len(live)-1].Context.InteractionID != in.ID ||
			live[len(live)-1].Context.InteractionStatus != "answered" {
			t.Errorf("%s has the runs %+v", agent, live)
		}
	}
}

func TestResolverPolicies(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada, bob := d.Agent("Ada"), d.Agent("Bob")
	asAda, asBob := companytest.As{Agent: ada, Run: d.Run(ada)}, companytest.As{Agent: bob, Run: d.Run(bob)}
	i := d.Issue(t, company.CreateIssue{})
	policy := func(p string) func(*paper.CreateInteraction) {
		return func(c *paper.CreateInteraction) { c.Policy = p }
	}
	for name, tc := range map[string]struct {
		by, who companytest.As
		change  func(*paper.CreateInteraction)
		allowed bool
	}{
		"anyone, by an agent":      {companytest.Board, asBob, policy("anyone"), true},
		"not who asked":            {asAda, asAda, policy("not_creator"), false},
		"another than who asked":   {asAda, asBob, policy("not_creator"), true},
		"people only, by an agent": {asAda, asBob, policy("board_only"), false},
		"people only, by a person": {asAda, companytest.Board, policy("human_only"), true},
		"somebody else is asked": {companytest.Board, asBob,
			func(c *paper.CreateInteraction) { c.AddresseeAgent = ada }, false},
		"the one that is asked": {companytest.Board, asAda,
			func(c *paper.CreateInteraction) { c.AddresseeAgent = ada }, true},
		"a person is asked": {companytest.Board, asAda,
			func(c *paper.CreateInteraction) { c.AddresseeUser = "u" }, false},
		"the board decides in any case": {companytest.Board, companytest.Board,
			func(c *paper.CreateInteraction) { c.AddresseeAgent = ada }, true},
	} {
		in := d.Asks(t, tc.by, i.ID, paper.Confirmation, `{"version":1,"prompt":"?"}`, tc.change)
		err := d.Do(tc.who, "interaction.accept", paper.ResolveInteraction{Issue: i.ID, ID: in.ID}, nil)
		if (err == nil) != tc.allowed {
			t.Errorf("%s: %v", name, err)
		}
	}
	in := d.Asks(t, asAda, i.ID, paper.Confirmation, `{"version":1,"prompt":"?"}`)
	companytest.WantRefusal(t, d.Do(asBob, "interaction.cancel", paper.ResolveInteraction{Issue: i.ID, ID: in.ID}, nil),
		ledger.Forbidden, "Only the board or who asked may take back an interaction")
	d.Must(t, asAda, "interaction.cancel", paper.ResolveInteraction{Issue: i.ID, ID: in.ID}, nil)
}

func TestAPersonsCommentEndsWhatItMakesMoot(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	i := d.Issue(t, company.CreateIssue{})
	moot := d.Asks(t, companytest.Board, i.ID, paper.Confirmation,
		`{"version":1,"prompt":"?","supersedeOnUserComment":true}`)
	stays := d.Asks(t, companytest.Board, i.ID, paper.SuggestTasks, companytest.FourTasks)
	d.Must(t, companytest.Board, "comment.create", entity.CreateComment{ID: d.ID(), Issue: i.ID,
		Body: "Do otherwise"}, nil)
	if in, _ := paper.InteractionOf(d.Tx, i, moot.ID); in.Status != "expired" {
		t.Errorf("the confirmation is %s", in.Status)
	}
	if in, _ := paper.InteractionOf(d.Tx, i, stays.ID); in.Status != "pending" {
		t.Errorf("the suggestion is %s", in.Status)
	}
	if !company.AwaitsBoard(d.Tx, i) {
		t.Error("the issue does not count as waiting")
	}
}

func TestConfirmationsOfAnOldRevisionExpire(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	i := d.Issue(t, company.CreateIssue{})
	var first paper.SavedDocument
	d.Must(t, companytest.Board, "document.save", paper.SaveDocument{Issue: i.ID, Key: "plan", ID: d.ID(),
		Revision: d.ID(), Format: "markdown", Body: "1"}, &first)
	payload := `{"version":1,"prompt":"?","target":{"type":"issue_document","key":"plan","revisionId":"` +
		first.Document.Latest + `"}}`
	a, b := d.Asks(t, companytest.Board, i.ID, paper.Confirmation, payload), d.Asks(t, companytest.Board, i.ID,
		paper.Confirmation, payload)
	var done paper.Interaction
	d.Must(t, companytest.Board, "interaction.accept", paper.ResolveInteraction{Issue: i.ID, ID: a.ID}, &done)
	if done.Status != "accepted" {
		t.Errorf("got %s", done.Status)
	}
	d.Must(t, companytest.Board, "document.save", paper.SaveDocument{Issue: i.ID, Key: "plan", ID: d.ID(),
		Revision: d.ID(), Format: "markdown", Body: "2", Base: first.Document.Latest}, nil)
	d.Must(t, companytest.Board, "interaction.accept", paper.ResolveInteraction{Issue: i.ID, ID: b.ID}, &done)
	if done.Status != "expired" {
		t.Errorf("got %s", done.Status)
	}
}

func TestMalformedInteractionsAreRefused(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	i := d.Issue(t, company.CreateIssue{})
	for name, tc := range map[string]struct{ kind, payload string }{
		"kind":      {"guess", `{}`},
		"no tasks":  {paper.SuggestTasks, `{"tasks":[]}`},
		"same keys": {paper.SuggestTasks, `{"tasks":[{"clientKey":"a","title":"x"},{"clientKey":"a","title":"y"}]}`},
		"circle": {paper.SuggestTasks,
			`{"tasks":[{"clientKey":"a","parentClientKey":"b","title":"x"},{"clientKey":"b",` +
				`"parentClientKey":"a","title":"y"}]}`},
		"no parent":  {paper.SuggestTasks, `{"tasks":[{"clientKey":"a","parentClientKey":"b","title":"x"}]}`},
		"no label":   {paper.SuggestTasks, `{"tasks":[{"clientKey":"a","title":"x","labels":["none"]}]}`},
		"questions":  {paper.AskQuestions, `{"questions":[]}`},
		"not JSON":   {paper.Confirmation, `{`},
		"no options": {paper.CheckboxConfirm, `{"options":[]}`},
		"too many":   {paper.CheckboxConfirm, `{"options":[{"id":"a"}],"minSelected":2}`},
	} {
		err := d.Do(companytest.Board, "interaction.create", paper.CreateInteraction{ID: d.ID(), Issue: i.ID, Kind: tc.kind,
			Payload: json.RawMessage(tc.payload)}, nil)
		if err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	if d.Count("interaction") != 0 {
		t.Error("a refused interaction was kept")
	}
}

func TestCheckboxesTakeAsManyAsAskedFor(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	i := d.Issue(t, company.CreateIssue{})
	in := d.Asks(t, companytest.Board, i.ID, paper.CheckboxConfirm,
		`{"options":[{"id":"a"},{"id":"b"},{"id":"c"}],"minSelected":1,"maxSelected":2,"rejectRequiresReason":true}`)
	choose := func(ids ...string) paper.ResolveInteraction {
		ids = append([]string{}, ids...)
		return paper.ResolveInteraction{Issue: i.ID, ID: in.ID, Options: &ids}
	}
	for _, c := range []struct {
		ids  []string
		says string
	}{
		{nil, "0 options are chosen, which is not as many as asked for"},
		{[]string{"a", "b", "c"}, "3 options are chosen, which is not as many as asked for"},
		{[]string{"z"}, "Unknown option: z"},
	} {
		companytest.WantRefusal(t, d.Do(companytest.Board, "interaction.accept", choose(c.ids...), nil),
			ledger.Unprocessable, c.says)
	}
	companytest.WantRefusal(t, d.Do(companytest.Board, "interaction.reject", choose(), nil), ledger.Unprocessable,
		"A reason is required to reject this interaction")
	var done paper.Interaction
	d.Must(t, companytest.Board, "interaction.accept", choose("c", "a", "a"), &done)
	if !strings.Contains(string(done.Result), `"selectedOptionIds":["a","c"]`) {
		t.Errorf("result %s", done.Result)
	}
}

func TestWorkProducts(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	i := d.Issue(t, company.CreateIssue{})
	make := func(title string, primary bool) (w file.WorkProduct) {
		d.Must(t, companytest.Board, "product.create", file.SaveProduct{ID: d.ID(), Issue: i.ID, Type: new("commit"),
			Provider: new("git"), Title: &title, Primary: &primary}, &w)
		return w
	}
	a, b := make("a", true), make("b", true)
	if list := file.ProductsOf(d.Tx, i); len(list) != 2 || list[0].ID != b.ID || list[1].Primary {
		t.Errorf("listed %+v", list)
	}
	companytest.WantRefusal(t, d.Do(companytest.Board, "product.update", file.SaveProduct{ID: a.ID, Status: new("lost")},
		nil), ledger.Invalid, "Unknown status of a work product: lost")
	d.Must(t, companytest.Board, "product.update", file.SaveProduct{ID: a.ID, Status: new("merged"),
		Metadata: json.RawMessage(`{"x":1}`)}, &a)
	if a.Status != "merged" || a.Title != "a" || string(a.Metadata) != `{"x":1}` {
		t.Errorf("got %+v", a)
	}
	d.Must(t, companytest.Board, "product.delete", file.DeleteProduct{ID: b.ID}, nil)
	companytest.WantRefusal(t, d.Do(companytest.Board, "product.delete", file.DeleteProduct{ID: b.ID}, nil),
		ledger.NotFound, "Work product not found")
	d.Asks(t, companytest.Board, i.ID, paper.SuggestTasks, companytest.FourTasks, func(p *paper.CreateInteraction) {
		p.RequestKey = "once"
	})
	d.Must(t, companytest.Board, "issue.delete", company.DeleteIssue{Issue: i.ID}, nil)
	if _, ok := file.ProductByID(d.Tx, a.ID); ok {
		t.Error("a deleted issue's product is found")
	}
	for company.ThreadsToSweep(d.Tx, d.Company) {
		d.Must(t, companytest.Board, "issue.sweep", company.SweepThreads{}, nil)
	}
	for _, table := range []string{"work-product", "work-product-issue", "interaction", "interaction-pending",
		"interaction-request"} {
		if n := d.Count(table); n != 0 {
			t.Errorf("%d rows of %s are left", n, table)
		}
	}
	if core.OwnerOf(d.Tx, a.ID) != "" {
		t.Error("the product is still owned")
	}
}

func TestVerdictsOnItems(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	i := d.Issue(t, company.CreateIssue{Assignee: ada})
	run := d.Run(ada)
	ask := `{"version":1,"prompt":"Which?","items":[{"id":"a"},{"id":"b"}],"verdicts":["approve","reject"],` +
		`"requireReasonOn":["reject"]}`
	in := d.Asks(t, companytest.As{Agent: ada, Run: run}, i.ID, paper.ItemVerdicts, ask)
	d.EndRun(run)
	p := paper.ResolveInteraction{Issue: i.ID, ID: in.ID}
	for name, tc := range map[string]struct {
		verdicts []paper.Verdict
		text     string
	}{
		"nothing":    {nil, "Item a has no verdict"},
		"not all":    {[]paper.Verdict{{Item: "a", Verdict: "approve"}}, "Item b has no verdict"},
		"unknown":    {[]paper.Verdict{{Item: "z", Verdict: "approve"}}, "Unknown item"},
		"twice":      {[]paper.Verdict{{Item: "a", Verdict: "approve"}, {Item: "a", Verdict: "approve"}}, "judged twice"},
		"not asked":  {[]paper.Verdict{{Item: "a", Verdict: "defer"}}, "not asked for"},
		"of nowhere": {[]paper.Verdict{{Item: "a", Verdict: "maybe"}}, "not asked for"},
		"no reason":  {[]paper.Verdict{{Item: "a", Verdict: "reject", Reason: " "}}, "reason is required"},
	} {
		p.Judged = tc.verdicts
		if err := d.Do(companytest.Board, "interaction.judge", p, nil); err == nil ||
			!strings.Contains(err.Error(), tc.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, verb := range []string{"accept", "answer", "reject"} {
		if r := companytest.Refused(t, d.Do(companytest.Board, "interaction."+verb, p, nil)); r.Code != ledger.Unprocessable {
			t.Errorf("%s: %+v", verb, r)
		}
	}
	p.Judged = []paper.Verdict{{Item: "b", Verdict: "reject", Reason: "no"}, {Item: "a", Verdict: "approve"}}
	var done paper.Interaction
	d.Must(t, companytest.Board, "interaction.judge", p, &done)
	if done.Status != "answered" || !strings.Contains(string(done.Result),
		`"approvedCount":1,"rejectedCount":1,"deferredCount":0`) {
		t.Errorf("%+v", done)
	}
	if live := entity.LiveRunsOfAgent(d.Tx, d.Company, ada); len(live) == 0 ||
		live[len(live)-1].Context.InteractionID != in.ID {
		t.Errorf("who asked has the runs %+v", live)
	}
	for name, bad := range map[string]string{"items": `{"version":1,"prompt":"?","items":[]}`,
		"ids":     `{"version":1,"prompt":"?","items":[{"id":"a"},{"id":"a"}]}`,
		"verdict": `{"version":1,"prompt":"?","items":[{"id":"a"}],"verdicts":["burn"]}`} {
		if r := companytest.Refused(t, d.Do(companytest.Board, "interaction.create", paper.CreateInteraction{ID: d.ID(),
			Issue: i.ID, Kind: paper.ItemVerdicts, Payload: []byte(bad)}, nil)); r.Code != ledger.Invalid {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestWithdrawnAndSkipped(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada, bob := d.Agent("Ada"), d.Agent("Bob")
	i := d.Issue(t, company.CreateIssue{})
	asAda, asBob := companytest.As{Agent: ada, Run: d.Run(ada)}, companytest.As{Agent: bob, Run: d.Run(bob)}
	questions := `{"version":1,"questions":[{"id":"q","prompt":"?","selectionMode":"single","options":[{"id":"a"}]}]}`
	in := d.Asks(t, asAda, i.ID, paper.AskQuestions, questions)
	p := paper.ResolveInteraction{Issue: i.ID, ID: in.ID, Reason: "moot"}
	if r := companytest.Refused(t, d.Do(asBob, "interaction.withdraw", p, nil)); r.Code != ledger.Forbidden {
		t.Errorf("another agent: %+v", r)
	}
	var done paper.Interaction
	d.Must(t, asAda, "interaction.withdraw", p, &done)
	if done.Status != "cancelled" || !strings.Contains(string(done.Result), `"outcome":"withdrawn","reason":"moot"`) {
		t.Errorf("%+v", done)
	}
	if r := companytest.Refused(t, d.Do(companytest.Board, "interaction.skip", p, nil)); r.Code != ledger.Conflict {
		t.Errorf("again: %+v", r)
	}
	d.EndRun(asAda.Run)
	d.EndRun(asBob.Run)
	for _, verb := range []string{"withdraw", "skip"} {
		asAda = companytest.As{Agent: ada, Run: d.Run(ada)}
		in = d.Asks(t, asAda, i.ID, paper.AskQuestions, questions)
		d.EndRun(asAda.Run)
		before := len(entity.WakeupsOf(d.Tx, d.Company, ada))
		d.Must(t, companytest.Board, "interaction."+verb, paper.ResolveInteraction{Issue: i.ID, ID: in.ID}, &done)
		if woken := len(entity.WakeupsOf(d.Tx, d.Company, ada)) > before; woken != (verb == "skip") {
			t.Errorf("%s: woken %v", verb, woken)
		}
	}
}

// What a request names is of the company, or it is refused when it is made; below
// the level it is taken, and nothing comes of it.
func TestRequestsNameWhatIsOfTheCompany(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	of := d.Company
	d.Found(t, "Other")
	theirs, there := d.Issue(t, company.CreateIssue{}), d.Agent("Theirs")
	var doc paper.SavedDocument
	d.Must(t, companytest.Board, "document.save", paper.SaveDocument{Issue: theirs.ID, Key: "plan", ID: d.ID(),
		Revision: d.ID(), Format: "markdown", Body: "1"}, &doc)
	d.Company = of
	ours := d.Issue(t, company.CreateIssue{})
	for payload, want := range map[string]string{
		`{"version":1,"prompt":"?","target":{"type":"issue_document","issueId":"` + theirs.ID +
			`","key":"plan","revisionId":"` + doc.Document.Latest + `"}}`: "Issue not found",
		`{"version":1,"prompt":"?","target":{"type":"issue_document","key":"plan","revisionId":"` + doc.Document.Latest +
			`"}}`: "Document revision not found",
	} {
		p := paper.CreateInteraction{ID: d.ID(), Issue: ours.ID, Kind: paper.Confirmation, Payload: []byte(payload)}
		companytest.WantRefusal(t, d.Do(companytest.Board, "interaction.create", p, nil), ledger.NotFound, want)
	}
	ask := `{"scopeType":"agent","scopeId":"` + there + `","windowKind":"lifetime","amount":5}`
	companytest.WantRefusal(t, d.Do(companytest.Board, "approval.create", money.CreateApproval{ID: d.ID(),
		Type: money.ApprovalBudget, Payload: []byte(ask)}, nil), ledger.NotFound, "Agent not found")
}

// The confirmation that an issue in review names is decided by whom the issue's review
// policy lets, until it leaves the review; other confirmations are their own matter.
func TestAReviewIsDecidedByWhomTheIssueLets(t *testing.T) {
	t.Parallel()
	const yes = `{"version":1,"prompt":"Good?"}`
	for policy, refused := range map[string][]string{"": nil, "anyone": nil, "not_creator": {"ada"},
		"human_only": {"ada", "bob"}} {
		for _, verdict := range []string{"interaction.accept", "interaction.reject"} {
			d := companytest.NewDesk(t)
			ada, bob := d.Hired("Ada"), d.Hired("Bob")
			i := d.Issue(t, company.CreateIssue{Assignee: ada, Status: entity.IssueBacklog, ReviewPolicy: policy})
			who, other := d.OnIssue(t, ada, i), companytest.As{Agent: bob, Run: d.Run(bob)}
			in, loose := d.Asks(t, who, i.ID, paper.Confirmation, yes), d.Asks(t, who, i.ID, paper.Confirmation, yes)
			d.Must(t, who, "issue.update", company.UpdateIssue{Issue: i.ID, Status: entity.IssueInReview, Review: in.ID}, nil)
			if !strings.Contains(string(d.Last[0].Details), `"reviewInteractionId":{"from":null,"to":"`+in.ID+`"}`) {
				t.Errorf("told %s", d.Last[0].Details)
			}
			for _, by := range []struct {
				name string
				who  companytest.As
			}{{"ada", who}, {"bob", other}} {
				if slices.Contains(refused, by.name) {
					companytest.WantCode(t, d.Do(by.who, verdict, paper.ResolveInteraction{Issue: i.ID, ID: in.ID, Reason: "x"}, nil),
						ledger.Forbidden, "review_policy_denied")
				}
			}
			by := companytest.Board
			if !slices.Contains(refused, "bob") {
				by = other
			}
			d.Must(t, who, verdict, paper.ResolveInteraction{Issue: i.ID, ID: loose.ID, Reason: "x"}, nil)
			d.Must(t, by, verdict, paper.ResolveInteraction{Issue: i.ID, ID: in.ID, Reason: "x"}, nil)
			d.Must(t, companytest.Board, "issue.update", company.UpdateIssue{Issue: i.ID, Status: entity.IssueTodo}, nil)
			if got := d.Load(i.ID); got.Review != "" {
				t.Errorf("%s: out of the review it names %s", policy, got.Review)
			}
		}
	}
}

func TestAReviewIsAskedForByAConfirmationOfOnesOwn(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada, bob := d.Hired("Ada"), d.Hired("Bob")
	i, elsewhere := d.Issue(t, company.CreateIssue{Assignee: ada, Status: entity.IssueBacklog}),
		d.Issue(t, company.CreateIssue{})
	who := d.OnIssue(t, ada, i)
	const yes = `{"version":1,"prompt":"Good?"}`
	own, over := d.Asks(t, who, i.ID, paper.Confirmation, yes), d.Asks(t, who, i.ID, paper.Confirmation, yes)
	d.Must(t, companytest.Board, "interaction.accept", paper.ResolveInteraction{Issue: i.ID, ID: over.ID}, nil)
	question := d.Asks(t, who, i.ID, paper.AskQuestions,
		`{"version":1,"questions":[{"id":"q","prompt":"?","selectionMode":"single","options":[{"id":"a"}]}]}`)
	others := d.Asks(t, companytest.As{Agent: bob, Run: d.Run(bob)}, i.ID, paper.Confirmation, yes)
	there := d.Asks(t, who, elsewhere.ID, paper.Confirmation, yes)
	const none = "reviewInteractionId: the issue has no such interaction"
	for _, c := range []struct {
		id   string
		want ledger.Code
		says string
	}{
		{over.ID, ledger.Conflict, "Interaction has already been resolved"},
		{question.ID, ledger.Unprocessable,
			"A review is asked for by a request_confirmation or a request_checkbox_confirmation"},
		{others.ID, ledger.Forbidden,
			"Only who made the interaction asks for the review by it; make one of your own, or leave out reviewInteractionId"},
		{there.ID, ledger.NotFound, none}, {companytest.UID(7), ledger.NotFound, none},
	} {
		companytest.WantRefusal(t, d.Do(who, "issue.update", company.UpdateIssue{Issue: i.ID, Status: entity.IssueInReview,
			Review: c.id}, nil), c.want, c.says)
	}
	companytest.WantRefusal(t, d.Do(who, "issue.update", company.UpdateIssue{Issue: i.ID, Title: new("x"),
		Review: own.ID}, nil),
		ledger.Unprocessable, "reviewInteractionId goes with the status in_review")
	d.Must(t, who, "issue.update", company.UpdateIssue{Issue: i.ID, Status: entity.IssueInReview, Review: own.ID}, nil)
	if got := d.Load(i.ID); got.Review != own.ID {
		t.Errorf("it names %q", got.Review)
	}
}
