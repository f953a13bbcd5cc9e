package company

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/ledger"
)

func (d *desk) asks(t testing.TB, who as, issue, kind, payload string, change ...func(*CreateInteraction)) (in Interaction) {
	t.Helper()
	p := CreateInteraction{ID: d.id(), Issue: issue, Kind: kind, Payload: json.RawMessage(payload)}
	for _, f := range change {
		f(&p)
	}
	d.must(t, who, "interaction.create", p, &in)
	return in
}

const fourTasks = `{"version":1,"tasks":[{"clientKey":"b","parentClientKey":"a","title":"Below"},{"clientKey":"a","title":"Above","billingCode":"X"},{"clientKey":"c","title":"Other"}]}`

func TestAcceptedTasksAreMadeTogether(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada := d.agent("Ada")
	who := as{ada, d.run(ada)}
	i := d.issue(t, CreateIssue{})
	in := d.asks(t, who, i.ID, SuggestTasks, fourTasks)
	if in.Status != "pending" || in.Continuation != "wake_assignee" || string(in.CreatedAgent) != ada {
		t.Fatalf("got %+v", in)
	}
	only := func(keys ...string) ResolveInteraction {
		keys = append([]string{}, keys...)
		return ResolveInteraction{Issue: i.ID, ID: in.ID, Tasks: &keys}
	}
	wantRefusal(t, d.do(board, "interaction.accept", only("b"), nil), ledger.Unprocessable, "Task b is chosen without its parent a")
	wantRefusal(t, d.do(board, "interaction.accept", only("z"), nil), ledger.Unprocessable, "Unknown task: z")
	wantRefusal(t, d.do(board, "interaction.accept", only(), nil), ledger.Unprocessable, "")
	if n := len(slices.Collect(ChildrenOf(d.tx, d.company, i.ID))); n != 0 {
		t.Errorf("a refused accept made %d tasks", n)
	}
	wantRefusal(t, d.do(board, "interaction.answer", ResolveInteraction{Issue: i.ID, ID: in.ID}, nil), ledger.Unprocessable, "An interaction of kind suggest_tasks cannot be answered")
	var done Interaction
	d.must(t, board, "interaction.accept", only("a", "b"), &done)
	var result struct {
		CreatedTasks []struct{ ClientKey, IssueID, ParentIssueID string }
		Skipped      []string `json:"skippedClientKeys"`
	}
	if err := json.Unmarshal(done.Result, &result); err != nil || len(result.CreatedTasks) != 2 || !slices.Equal(result.Skipped, []string{"c"}) {
		t.Fatalf("result %s: %v", done.Result, err)
	}
	above, below := d.load(result.CreatedTasks[0].IssueID), d.load(result.CreatedTasks[1].IssueID)
	if above.Parent != i.ID || below.Parent != above.ID || below.Depth != i.Depth+2 {
		t.Errorf("made %+v below %+v", below, above)
	}
	wantRefusal(t, d.do(board, "interaction.accept", only("a"), nil), ledger.Conflict, "Interaction has already been resolved")
	wantRefusal(t, d.do(board, "interaction.reject", only("a"), nil), ledger.Conflict, "Interaction has already been resolved")
	if n := len(pendingInteractions(d.tx, i)); n != 0 {
		t.Errorf("%d still wait", n)
	}
}

func TestWhoAskedIsToldWhatBecameOfIt(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada, bob := d.agent("Ada"), d.agent("Bob")
	i := d.issue(t, CreateIssue{Assignee: bob})
	run := d.run(ada)
	in := d.asks(t, as{ada, run}, i.ID, AskQuestions, `{"version":1,"questions":[{"id":"q","prompt":"?","selectionMode":"single","required":true,"options":[{"id":"a"},{"id":"b"}]}]}`)
	d.endRun(run)
	p := ResolveInteraction{Issue: i.ID, ID: in.ID}
	for name, tc := range map[string]struct {
		answers []Answer
		text    string
	}{
		"nothing":   {nil, "must be answered"},
		"empty":     {[]Answer{{Question: "q"}}, "must be answered"},
		"unknown":   {[]Answer{{Question: "x"}}, "Unknown question"},
		"option":    {[]Answer{{Question: "q", Options: []string{"z"}}}, "no option"},
		"two":       {[]Answer{{Question: "q", Options: []string{"a", "b"}}}, "takes one option"},
		"twice":     {[]Answer{{Question: "q", Options: []string{"a"}}, {Question: "q", Options: []string{"a"}}}, "twice"},
		"one's own": {[]Answer{{Question: "q", Other: "mine"}}, "does not accept free text"},
	} {
		p.Answers = tc.answers
		if err := d.do(board, "interaction.answer", p, nil); err == nil || !strings.Contains(err.Error(), tc.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
	p.Answers = []Answer{{Question: "q", Options: []string{"b"}}}
	d.must(t, board, "interaction.answer", p, nil)
	for _, agent := range []string{ada, bob} {
		live := LiveRunsOfAgent(d.tx, d.company, agent)
		if len(live) == 0 || live[len(live)-1].Context.InteractionID != in.ID || live[len(live)-1].Context.InteractionStatus != "answered" {
			t.Errorf("%s has the runs %+v", agent, live)
		}
	}
}

func TestResolverPolicies(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada, bob := d.agent("Ada"), d.agent("Bob")
	asAda, asBob := as{ada, d.run(ada)}, as{bob, d.run(bob)}
	i := d.issue(t, CreateIssue{})
	policy := func(p string) func(*CreateInteraction) { return func(c *CreateInteraction) { c.Policy = p } }
	for name, tc := range map[string]struct {
		by, who as
		change  func(*CreateInteraction)
		allowed bool
	}{
		"anyone, by an agent":           {board, asBob, policy("anyone"), true},
		"not who asked":                 {asAda, asAda, policy("not_creator"), false},
		"another than who asked":        {asAda, asBob, policy("not_creator"), true},
		"people only, by an agent":      {asAda, asBob, policy("board_only"), false},
		"people only, by a person":      {asAda, board, policy("human_only"), true},
		"somebody else is asked":        {board, asBob, func(c *CreateInteraction) { c.AddresseeAgent = ada }, false},
		"the one that is asked":         {board, asAda, func(c *CreateInteraction) { c.AddresseeAgent = ada }, true},
		"a person is asked":             {board, asAda, func(c *CreateInteraction) { c.AddresseeUser = "u" }, false},
		"the board decides in any case": {board, board, func(c *CreateInteraction) { c.AddresseeAgent = ada }, true},
	} {
		in := d.asks(t, tc.by, i.ID, Confirmation, `{"version":1,"prompt":"?"}`, tc.change)
		err := d.do(tc.who, "interaction.accept", ResolveInteraction{Issue: i.ID, ID: in.ID}, nil)
		if (err == nil) != tc.allowed {
			t.Errorf("%s: %v", name, err)
		}
	}
	in := d.asks(t, asAda, i.ID, Confirmation, `{"version":1,"prompt":"?"}`)
	wantRefusal(t, d.do(asBob, "interaction.cancel", ResolveInteraction{Issue: i.ID, ID: in.ID}, nil), ledger.Forbidden, "")
	d.must(t, asAda, "interaction.cancel", ResolveInteraction{Issue: i.ID, ID: in.ID}, nil)
}

func TestAPersonsCommentEndsWhatItMakesMoot(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	i := d.issue(t, CreateIssue{})
	moot := d.asks(t, board, i.ID, Confirmation, `{"version":1,"prompt":"?","supersedeOnUserComment":true}`)
	stays := d.asks(t, board, i.ID, SuggestTasks, fourTasks)
	d.must(t, board, "comment.create", CreateComment{ID: d.id(), Issue: i.ID, Body: "Do otherwise"}, nil)
	if in, _ := InteractionOf(d.tx, i, moot.ID); in.Status != "expired" {
		t.Errorf("the confirmation is %s", in.Status)
	}
	if in, _ := InteractionOf(d.tx, i, stays.ID); in.Status != "pending" {
		t.Errorf("the suggestion is %s", in.Status)
	}
	if !awaitsBoard(d.tx, i) {
		t.Error("the issue does not count as waiting")
	}
}

func TestConfirmationsOfAnOldRevisionExpire(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	i := d.issue(t, CreateIssue{})
	var first SavedDocument
	d.must(t, board, "document.save", SaveDocument{Issue: i.ID, Key: "plan", ID: d.id(), Revision: d.id(), Format: "markdown", Body: "1"}, &first)
	payload := `{"version":1,"prompt":"?","target":{"type":"issue_document","key":"plan","revisionId":"` + first.Document.Latest + `"}}`
	a, b := d.asks(t, board, i.ID, Confirmation, payload), d.asks(t, board, i.ID, Confirmation, payload)
	var done Interaction
	d.must(t, board, "interaction.accept", ResolveInteraction{Issue: i.ID, ID: a.ID}, &done)
	if done.Status != "accepted" {
		t.Errorf("got %s", done.Status)
	}
	d.must(t, board, "document.save", SaveDocument{Issue: i.ID, Key: "plan", ID: d.id(), Revision: d.id(), Format: "markdown", Body: "2", Base: first.Document.Latest}, nil)
	d.must(t, board, "interaction.accept", ResolveInteraction{Issue: i.ID, ID: b.ID}, &done)
	if done.Status != "expired" {
		t.Errorf("got %s", done.Status)
	}
}

func TestMalformedInteractionsAreRefused(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	i := d.issue(t, CreateIssue{})
	for name, tc := range map[string]struct{ kind, payload string }{
		"kind":       {"guess", `{}`},
		"no tasks":   {SuggestTasks, `{"tasks":[]}`},
		"same keys":  {SuggestTasks, `{"tasks":[{"clientKey":"a","title":"x"},{"clientKey":"a","title":"y"}]}`},
		"circle":     {SuggestTasks, `{"tasks":[{"clientKey":"a","parentClientKey":"b","title":"x"},{"clientKey":"b","parentClientKey":"a","title":"y"}]}`},
		"no parent":  {SuggestTasks, `{"tasks":[{"clientKey":"a","parentClientKey":"b","title":"x"}]}`},
		"no label":   {SuggestTasks, `{"tasks":[{"clientKey":"a","title":"x","labels":["none"]}]}`},
		"questions":  {AskQuestions, `{"questions":[]}`},
		"not JSON":   {Confirmation, `{`},
		"no options": {CheckboxConfirm, `{"options":[]}`},
		"too many":   {CheckboxConfirm, `{"options":[{"id":"a"}],"minSelected":2}`},
	} {
		err := d.do(board, "interaction.create", CreateInteraction{ID: d.id(), Issue: i.ID, Kind: tc.kind, Payload: json.RawMessage(tc.payload)}, nil)
		if err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	if d.count("interaction") != 0 {
		t.Error("a refused interaction was kept")
	}
}

func TestCheckboxesTakeAsManyAsAskedFor(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	i := d.issue(t, CreateIssue{})
	in := d.asks(t, board, i.ID, CheckboxConfirm, `{"options":[{"id":"a"},{"id":"b"},{"id":"c"}],"minSelected":1,"maxSelected":2,"rejectRequiresReason":true}`)
	choose := func(ids ...string) ResolveInteraction {
		ids = append([]string{}, ids...)
		return ResolveInteraction{Issue: i.ID, ID: in.ID, Options: &ids}
	}
	for _, ids := range [][]string{{}, {"a", "b", "c"}, {"z"}} {
		wantRefusal(t, d.do(board, "interaction.accept", choose(ids...), nil), ledger.Unprocessable, "")
	}
	wantRefusal(t, d.do(board, "interaction.reject", choose(), nil), ledger.Unprocessable, "A reason is required to reject this interaction")
	var done Interaction
	d.must(t, board, "interaction.accept", choose("c", "a", "a"), &done)
	if !strings.Contains(string(done.Result), `"selectedOptionIds":["a","c"]`) {
		t.Errorf("result %s", done.Result)
	}
}

func TestWorkProducts(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	i := d.issue(t, CreateIssue{})
	make := func(title string, primary bool) (w WorkProduct) {
		d.must(t, board, "product.create", SaveProduct{ID: d.id(), Issue: i.ID, Type: new("commit"), Provider: new("git"), Title: &title, Primary: &primary}, &w)
		return w
	}
	a, b := make("a", true), make("b", true)
	if list := ProductsOf(d.tx, i); len(list) != 2 || list[0].ID != b.ID || list[1].Primary {
		t.Errorf("listed %+v", list)
	}
	wantRefusal(t, d.do(board, "product.update", SaveProduct{ID: a.ID, Status: new("lost")}, nil), ledger.Invalid, "Unknown status of a work product: lost")
	d.must(t, board, "product.update", SaveProduct{ID: a.ID, Status: new("merged"), Metadata: json.RawMessage(`{"x":1}`)}, &a)
	if a.Status != "merged" || a.Title != "a" || string(a.Metadata) != `{"x":1}` {
		t.Errorf("got %+v", a)
	}
	d.must(t, board, "product.delete", DeleteProduct{ID: b.ID}, nil)
	wantRefusal(t, d.do(board, "product.delete", DeleteProduct{ID: b.ID}, nil), ledger.NotFound, "")
	d.asks(t, board, i.ID, SuggestTasks, fourTasks, func(p *CreateInteraction) { p.RequestKey = "once" })
	d.must(t, board, "issue.delete", DeleteIssue{Issue: i.ID}, nil)
	if _, ok := ProductByID(d.tx, a.ID); ok {
		t.Error("a deleted issue's product is found")
	}
	for ThreadsToSweep(d.tx, d.company) {
		d.must(t, board, "issue.sweep", SweepThreads{}, nil)
	}
	for _, table := range []string{"work-product", "work-product-issue", "interaction", "interaction-pending", "interaction-request"} {
		if n := d.count(table); n != 0 {
			t.Errorf("%d rows of %s are left", n, table)
		}
	}
	if OwnerOf(d.tx, a.ID) != "" {
		t.Error("the product is still owned")
	}
}

func TestVerdictsOnItems(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada := d.agent("Ada")
	i := d.issue(t, CreateIssue{Assignee: ada})
	run := d.run(ada)
	ask := `{"version":1,"prompt":"Which?","items":[{"id":"a"},{"id":"b"}],"verdicts":["approve","reject"],"requireReasonOn":["reject"]}`
	in := d.asks(t, as{ada, run}, i.ID, ItemVerdicts, ask)
	d.endRun(run)
	p := ResolveInteraction{Issue: i.ID, ID: in.ID}
	for name, tc := range map[string]struct {
		verdicts []Verdict
		text     string
	}{
		"nothing":    {nil, "Item a has no verdict"},
		"not all":    {[]Verdict{{Item: "a", Verdict: "approve"}}, "Item b has no verdict"},
		"unknown":    {[]Verdict{{Item: "z", Verdict: "approve"}}, "Unknown item"},
		"twice":      {[]Verdict{{Item: "a", Verdict: "approve"}, {Item: "a", Verdict: "approve"}}, "judged twice"},
		"not asked":  {[]Verdict{{Item: "a", Verdict: "defer"}}, "not asked for"},
		"of nowhere": {[]Verdict{{Item: "a", Verdict: "maybe"}}, "not asked for"},
		"no reason":  {[]Verdict{{Item: "a", Verdict: "reject", Reason: " "}}, "reason is required"},
	} {
		p.Judged = tc.verdicts
		if err := d.do(board, "interaction.judge", p, nil); err == nil || !strings.Contains(err.Error(), tc.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, verb := range []string{"accept", "answer", "reject"} {
		if r := refused(t, d.do(board, "interaction."+verb, p, nil)); r.Code != ledger.Unprocessable {
			t.Errorf("%s: %+v", verb, r)
		}
	}
	p.Judged = []Verdict{{Item: "b", Verdict: "reject", Reason: "no"}, {Item: "a", Verdict: "approve"}}
	var done Interaction
	d.must(t, board, "interaction.judge", p, &done)
	if done.Status != "answered" || !strings.Contains(string(done.Result), `"approvedCount":1,"rejectedCount":1,"deferredCount":0`) {
		t.Errorf("%+v", done)
	}
	if live := LiveRunsOfAgent(d.tx, d.company, ada); len(live) == 0 || live[len(live)-1].Context.InteractionID != in.ID {
		t.Errorf("who asked has the runs %+v", live)
	}
	for name, bad := range map[string]string{"items": `{"version":1,"prompt":"?","items":[]}`, "ids": `{"version":1,"prompt":"?","items":[{"id":"a"},{"id":"a"}]}`,
		"verdict": `{"version":1,"prompt":"?","items":[{"id":"a"}],"verdicts":["burn"]}`} {
		if r := refused(t, d.do(board, "interaction.create", CreateInteraction{ID: d.id(), Issue: i.ID, Kind: ItemVerdicts, Payload: []byte(bad)}, nil)); r.Code != ledger.Invalid {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestWithdrawnAndSkipped(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada, bob := d.agent("Ada"), d.agent("Bob")
	i := d.issue(t, CreateIssue{})
	asAda, asBob := as{ada, d.run(ada)}, as{bob, d.run(bob)}
	questions := `{"version":1,"questions":[{"id":"q","prompt":"?","selectionMode":"single","options":[{"id":"a"}]}]}`
	in := d.asks(t, asAda, i.ID, AskQuestions, questions)
	p := ResolveInteraction{Issue: i.ID, ID: in.ID, Reason: "moot"}
	if r := refused(t, d.do(asBob, "interaction.withdraw", p, nil)); r.Code != ledger.Forbidden {
		t.Errorf("another agent: %+v", r)
	}
	var done Interaction
	d.must(t, asAda, "interaction.withdraw", p, &done)
	if done.Status != "cancelled" || !strings.Contains(string(done.Result), `"outcome":"withdrawn","reason":"moot"`) {
		t.Errorf("%+v", done)
	}
	if r := refused(t, d.do(board, "interaction.skip", p, nil)); r.Code != ledger.Conflict {
		t.Errorf("again: %+v", r)
	}
	d.endRun(asAda.run)
	d.endRun(asBob.run)
	for _, verb := range []string{"withdraw", "skip"} {
		asAda = as{ada, d.run(ada)}
		in = d.asks(t, asAda, i.ID, AskQuestions, questions)
		d.endRun(asAda.run)
		before := len(WakeupsOf(d.tx, d.company, ada))
		d.must(t, board, "interaction."+verb, ResolveInteraction{Issue: i.ID, ID: in.ID}, &done)
		if woken := len(WakeupsOf(d.tx, d.company, ada)) > before; woken != (verb == "skip") {
			t.Errorf("%s: woken %v", verb, woken)
		}
	}
}

// What a request names is of the company, or it is refused when it is made; below
// the level it is taken, and nothing comes of it.
func TestRequestsNameWhatIsOfTheCompany(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	of := d.company
	d.found(t, "Other")
	theirs, there := d.issue(t, CreateIssue{}), d.agent("Theirs")
	var doc SavedDocument
	d.must(t, board, "document.save", SaveDocument{Issue: theirs.ID, Key: "plan", ID: d.id(), Revision: d.id(), Format: "markdown", Body: "1"}, &doc)
	d.company = of
	ours := d.issue(t, CreateIssue{})
	for payload, want := range map[string]string{
		`{"version":1,"prompt":"?","target":{"type":"issue_document","issueId":"` + theirs.ID + `","key":"plan","revisionId":"` + doc.Document.Latest + `"}}`: "Issue not found",
		`{"version":1,"prompt":"?","target":{"type":"issue_document","key":"plan","revisionId":"` + doc.Document.Latest + `"}}`:                               "Document revision not found",
	} {
		p := CreateInteraction{ID: d.id(), Issue: ours.ID, Kind: Confirmation, Payload: []byte(payload)}
		wantRefusal(t, d.do(board, "interaction.create", p, nil), ledger.NotFound, want)
	}
	ask := `{"scopeType":"agent","scopeId":"` + there + `","windowKind":"lifetime","amount":5}`
	wantRefusal(t, d.do(board, "approval.create", CreateApproval{ID: d.id(), Type: ApprovalBudget, Payload: []byte(ask)}, nil), ledger.NotFound, "Agent not found")
}

// The confirmation that an issue in review names is decided by whom the issue's review
// policy lets, until it leaves the review; other confirmations are their own matter.
func TestAReviewIsDecidedByWhomTheIssueLets(t *testing.T) {
	t.Parallel()
	const yes = `{"version":1,"prompt":"Good?"}`
	for policy, refused := range map[string][]string{"": nil, "anyone": nil, "not_creator": {"ada"}, "human_only": {"ada", "bob"}} {
		for _, verdict := range []string{"interaction.accept", "interaction.reject"} {
			d := newDesk(t)
			ada, bob := d.hired("Ada"), d.hired("Bob")
			i := d.issue(t, CreateIssue{Assignee: ada, Status: IssueBacklog, ReviewPolicy: policy})
			who, other := d.onIssue(t, ada, i), as{bob, d.run(bob)}
			in, loose := d.asks(t, who, i.ID, Confirmation, yes), d.asks(t, who, i.ID, Confirmation, yes)
			d.must(t, who, "issue.update", UpdateIssue{Issue: i.ID, Status: IssueInReview, Review: in.ID}, nil)
			if !strings.Contains(string(d.last[0].Details), `"reviewInteractionId":{"from":null,"to":"`+in.ID+`"}`) {
				t.Errorf("told %s", d.last[0].Details)
			}
			for _, by := range []struct {
				name string
				who  as
			}{{"ada", who}, {"bob", other}} {
				if slices.Contains(refused, by.name) {
					wantCode(t, d.do(by.who, verdict, ResolveInteraction{Issue: i.ID, ID: in.ID, Reason: "x"}, nil), ledger.Forbidden, "review_policy_denied")
				}
			}
			by := board
			if !slices.Contains(refused, "bob") {
				by = other
			}
			d.must(t, who, verdict, ResolveInteraction{Issue: i.ID, ID: loose.ID, Reason: "x"}, nil)
			d.must(t, by, verdict, ResolveInteraction{Issue: i.ID, ID: in.ID, Reason: "x"}, nil)
			d.must(t, board, "issue.update", UpdateIssue{Issue: i.ID, Status: IssueTodo}, nil)
			if got := d.load(i.ID); got.Review != "" {
				t.Errorf("%s: out of the review it names %s", policy, got.Review)
			}
		}
	}
}

func TestAReviewIsAskedForByAConfirmationOfOnesOwn(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada, bob := d.hired("Ada"), d.hired("Bob")
	i, elsewhere := d.issue(t, CreateIssue{Assignee: ada, Status: IssueBacklog}), d.issue(t, CreateIssue{})
	who := d.onIssue(t, ada, i)
	const yes = `{"version":1,"prompt":"Good?"}`
	own, over := d.asks(t, who, i.ID, Confirmation, yes), d.asks(t, who, i.ID, Confirmation, yes)
	d.must(t, board, "interaction.accept", ResolveInteraction{Issue: i.ID, ID: over.ID}, nil)
	question := d.asks(t, who, i.ID, AskQuestions, `{"version":1,"questions":[{"id":"q","prompt":"?","selectionMode":"single","options":[{"id":"a"}]}]}`)
	others := d.asks(t, as{bob, d.run(bob)}, i.ID, Confirmation, yes)
	there := d.asks(t, who, elsewhere.ID, Confirmation, yes)
	for id, want := range map[string]ledger.Code{over.ID: ledger.Conflict, question.ID: ledger.Unprocessable, others.ID: ledger.Forbidden, there.ID: ledger.NotFound, uid(7): ledger.NotFound} {
		wantCode(t, d.do(who, "issue.update", UpdateIssue{Issue: i.ID, Status: IssueInReview, Review: id}, nil), want, "")
	}
	wantCode(t, d.do(who, "issue.update", UpdateIssue{Issue: i.ID, Title: new("x"), Review: own.ID}, nil), ledger.Unprocessable, "")
	d.must(t, who, "issue.update", UpdateIssue{Issue: i.ID, Status: IssueInReview, Review: own.ID}, nil)
	if got := d.load(i.ID); got.Review != own.ID {
		t.Errorf("it names %q", got.Review)
	}
}
