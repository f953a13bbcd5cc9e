package skill

import (
	"cmp"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A SkillComment is a comment on a skill of a company.
type SkillComment struct {
	ID          string           `cbor:"1,keyasint" json:"id"`
	Company     ledger.CompanyID `cbor:"2,keyasint" json:"companyId"`
	Skill       string           `cbor:"3,keyasint" json:"companySkillId"`
	Parent      core.NullText    `cbor:"4,keyasint,omitempty" json:"parentCommentId"`
	AuthorAgent core.NullText    `cbor:"5,keyasint,omitempty" json:"authorAgentId"`
	AuthorUser  core.NullText    `cbor:"6,keyasint,omitempty" json:"authorUserId"`
	Body        string           `cbor:"7,keyasint" json:"body"` // "" if it was deleted
	DeletedAt   core.Time        `cbor:"8,keyasint,omitempty" json:"deletedAt"`
	CreatedAt   core.Time        `cbor:"9,keyasint" json:"createdAt"`
	UpdatedAt   core.Time        `cbor:"10,keyasint" json:"updatedAt"`
	Seq         uint64           `cbor:"11,keyasint" json:"-"` // number among the skill's comments, from 1
}

// A SkillTestInput is a text with which a skill is tested.
type SkillTestInput struct {
	ID        string           `cbor:"1,keyasint" json:"id"`
	Company   ledger.CompanyID `cbor:"2,keyasint" json:"companyId"`
	Skill     string           `cbor:"3,keyasint" json:"skillId"`
	Name      string           `cbor:"4,keyasint" json:"name"`
	Content   string           `cbor:"5,keyasint" json:"content"`
	CreatedBy core.NullText    `cbor:"6,keyasint,omitempty" json:"createdBy"`
	DeletedAt core.Time        `cbor:"-" json:"deletedAt"` // always null: deleted inputs have no row
	CreatedAt core.Time        `cbor:"7,keyasint" json:"createdAt"`
	UpdatedAt core.Time        `cbor:"8,keyasint" json:"updatedAt"`
}

// A SkillTest is one test of a skill by an agent. It has its own issue, in which the agent
// applies the skill to an input and leaves the result in a document. The status of the test
// follows from that issue.
type SkillTest struct {
	ID        string           `cbor:"1,keyasint" json:"id"`
	Company   ledger.CompanyID `cbor:"2,keyasint" json:"companyId"`
	Skill     string           `cbor:"3,keyasint" json:"skillId"`
	Input     core.NullText    `cbor:"4,keyasint,omitempty" json:"inputId"`
	Content   string           `cbor:"5,keyasint" json:"inputSnapshot"`
	Version   string           `cbor:"6,keyasint" json:"skillVersionId"`
	Agent     string           `cbor:"7,keyasint" json:"agentId"`
	Issue     string           `cbor:"8,keyasint" json:"issueId"`
	CreatedAt core.Time        `cbor:"9,keyasint" json:"createdAt"`
	UpdatedAt core.Time        `cbor:"10,keyasint" json:"updatedAt"`
	Seq       uint64           `cbor:"11,keyasint" json:"-"`
	// Kept is the status and Output the result of a test that was imported without its
	// issue.
	Kept   string `cbor:"12,keyasint,omitempty" json:"-"`
	Output string `cbor:"13,keyasint,omitempty" json:"-"`
}

// Keyed by "<skill>.<order>"; inputs by "<skill>.<id>".
var (
	skillComments   = ledger.NewTable[string, SkillComment]("skill-comment")
	skillTestInputs = ledger.NewTable[string, SkillTestInput]("skill-test-input")
	skillTests      = ledger.NewTable[string, SkillTest]("skill-test")
)

const (
	// MaxSkillComments, MaxSkillInputs and MaxSkillTests bound what one skill has: lists
	// return all, and they are deleted with the skill. At the bound, the oldest test is
	// deleted.
	MaxSkillComments = 500
	MaxSkillInputs   = 100
	MaxSkillTests    = 200
	// MaxSkillComment and MaxSkillInput bound one text, in bytes.
	MaxSkillComment = 16 << 10
	MaxSkillInput   = 64 << 10
	// SkillTestOutput is the key of the document in which a test leaves its result;
	// originSkillTest is the origin of its issue.
	SkillTestOutput = "output"
	originSkillTest = "skill_test"
)

// SaySkill is the payload of skill_comment.create and skill_comment.update.
type SaySkill struct {
	ID     string `cbor:"1,keyasint"`
	Skill  string `cbor:"2,keyasint"`
	Parent string `cbor:"3,keyasint,omitempty"`
	Body   string `cbor:"4,keyasint,omitempty"`
	Delete bool   `cbor:"5,keyasint,omitempty"`
}

// SaveSkillInput is the payload of skill_test.input. It creates, changes or deletes an input.
// A nil field keeps the value.
type SaveSkillInput struct {
	ID      string  `cbor:"1,keyasint"`
	Skill   string  `cbor:"2,keyasint"`
	Name    *string `cbor:"3,keyasint,omitempty"`
	Content *string `cbor:"4,keyasint,omitempty"`
	Delete  bool    `cbor:"5,keyasint,omitempty"`
}

// StartSkillTest is the payload of skill_test.start. Content is the text to test with if no
// input is named.
type StartSkillTest struct {
	ID      string `cbor:"1,keyasint"`
	Skill   string `cbor:"2,keyasint"`
	Agent   string `cbor:"3,keyasint"`
	Issue   string `cbor:"4,keyasint"` // ID of the new issue
	Input   string `cbor:"5,keyasint,omitempty"`
	Content string `cbor:"6,keyasint,omitempty"`
	Version string `cbor:"7,keyasint,omitempty"` // empty: the current files
}

// KeepSkillTest is the payload of skill_test.keep, by which an import adds the result of a
// test made elsewhere. It starts no test.
type KeepSkillTest struct {
	ID      string `cbor:"1,keyasint"`
	Skill   string `cbor:"2,keyasint"`
	Input   string `cbor:"3,keyasint,omitempty"`
	Content string `cbor:"4,keyasint"`
	Agent   string `cbor:"5,keyasint,omitempty"`
	Issue   string `cbor:"6,keyasint,omitempty"`
	Status  string `cbor:"7,keyasint"` // succeeded, failed or cancelled
	Output  string `cbor:"8,keyasint,omitempty"`
}

// ForgetSkillTest is the payload of skill_test.forget.
type ForgetSkillTest struct {
	Skill string `cbor:"1,keyasint"`
	ID    string `cbor:"2,keyasint"`
}

const (
	KindSkillCommentCreate = "skill_comment.create"
	KindSkillCommentUpdate = "skill_comment.update"
	KindSkillTestInput     = "skill_test.input"
	KindSkillTestStart     = "skill_test.start"
	KindSkillTestKeep      = "skill_test.keep"
	KindSkillTestForget    = "skill_test.forget"
)

var skillReviewKinds = []company.Kind{
	{Name: KindSkillCommentCreate, From: company.FromBoard | company.FromAgent,
		Traits: company.Importable | company.Authored, Weight: company.Weights.Talk, Do: ledger.Typed(commentSkill)},
	{Name: KindSkillCommentUpdate, From: company.FromBoard | company.FromAgent, Weight: company.Weights.Talk,
		Do: ledger.Typed(changeSkillComment)},
	{Name: KindSkillTestInput, From: company.FromBoard | company.FromAgent, Needs: entity.CreateSkills,
		Traits: company.Importable, Weight: company.Weights.Task, Do: ledger.Typed(saveSkillInput)},
	{Name: KindSkillTestStart, From: company.FromBoard | company.FromAgent, Needs: entity.CreateSkills,
		Weight: company.Weights.Task, Do: ledger.Typed(startSkillTest)},
	{Name: KindSkillTestKeep, From: company.FromBoard, Traits: company.Importable, Weight: company.Weights.Task,
		Do: ledger.Typed(keepSkillTest)},
	{Name: KindSkillTestForget, From: company.FromBoard | company.FromAgent, Needs: entity.CreateSkills,
		Weight: company.Weights.Erase, Do: ledger.Typed(forgetSkillTest)},
}

func ofSkill[T any](tx *ledger.Tx, t *ledger.Table[string, T], company ledger.CompanyID, skill string) []T {
	out := []T{}
	for _, v := range tx.Prefix(t.Key(company, skill+".")) {
		out = append(out, core.DecodeRow[T](v))
	}
	return out
}

// SkillCommentsOf returns the comments on a skill, oldest first.
func SkillCommentsOf(tx *ledger.Tx, s Skill) []SkillComment {
	return ofSkill(tx, skillComments, s.Company, s.ID)
}

// SkillInputsOf returns the test inputs of a skill.
func SkillInputsOf(tx *ledger.Tx, s Skill) []SkillTestInput {
	return ofSkill(tx, skillTestInputs, s.Company, s.ID)
}

// SkillTestsOf returns the tests of a skill, the latest first.
func SkillTestsOf(tx *ledger.Tx, s Skill) []SkillTest {
	out := ofSkill(tx, skillTests, s.Company, s.ID)
	slices.Reverse(out)
	return out
}

// Status returns the status of a test, derived from its issue: queued, running, succeeded,
// failed or cancelled.
func (t SkillTest) Status(i entity.Issue, there bool) string {
	switch {
	case !there && t.Kept != "":
		return t.Kept
	case !there || i.Status == entity.IssueBlocked:
		return "failed"
	case i.Status == entity.IssueCancelled:
		return "cancelled"
	case i.Status == entity.IssueDone || i.Status == entity.IssueInReview:
		return "succeeded"
	case i.Status == entity.IssueInProgress:
		return "running"
	}
	return "queued"
}

func skillRowKey(skill string, seq uint64) string { return skill + "." + ledger.Order(seq) }

// discussed returns the skill that the actor comments on. An agent needs a run.
func discussed(c *ledger.Context, id string) (Skill, error) {
	if core.IsAgent(c) {
		if err := company.MustRun(c); err != nil {
			return Skill{}, err
		}
	}
	s, ok := SkillRows.Get(c.Tx, c.Cmd.Company, id)
	if !ok {
		return s, errNoSkill()
	}
	return s, nil
}

func (cm SkillComment) change(action string) ledger.Change {
	return ledger.Change{Action: action, EntityType: "company_skill_comment", EntityID: cm.ID,
		Details: core.Object{}.Str("skillId", cm.Skill).Null("parentCommentId", string(cm.Parent)).Close()}
}

func checkSaid(body string) error {
	if strings.TrimSpace(body) == "" || len(body) > MaxSkillComment {
		return ledger.Refuse(ledger.Invalid, nil, "A comment needs a text of at most %d bytes", MaxSkillComment)
	}
	return nil
}

func commentSkill(c *ledger.Context, p SaySkill) (any, error) {
	s, err := discussed(c, p.Skill)
	if err != nil {
		return nil, err
	}
	if err := checkSaid(p.Body); err != nil {
		return nil, err
	}
	list := SkillCommentsOf(c.Tx, s)
	known := func(id string) bool {
		return slices.ContainsFunc(list, func(o SkillComment) bool { return o.ID == id })
	}
	switch {
	case !core.IsID(p.ID) || known(p.ID):
		return nil, ledger.Refuse(ledger.Invalid, nil, "malformed ID of a comment")
	case p.Parent != "" && !known(p.Parent):
		return nil, ledger.Refuse(ledger.NotFound, nil, "Parent comment not found")
	case len(list) >= MaxSkillComments:
		return nil, ledger.Refuse(ledger.Unprocessable, nil, "A skill can have at most %d comments", MaxSkillComments)
	}
	now := core.TimeOf(c.Now)
	cm := SkillComment{ID: p.ID, Company: s.Company, Skill: s.ID, Parent: core.NullText(p.Parent), Body: p.Body,
		CreatedAt: now, UpdatedAt: now, Seq: 1}
	if len(list) > 0 {
		cm.Seq = list[len(list)-1].Seq + 1
	}
	cm.AuthorAgent, cm.AuthorUser = core.ActedBy(c)
	c.Record(cm.change("company.skill_comment_created"))
	return skillComments.Put(c.Tx, s.Company, skillRowKey(s.ID, cm.Seq), cm), nil
}

// changeSkillComment changes or deletes a comment. Its author may; the board may delete any.
// A deleted comment that has replies is kept without its text.
func changeSkillComment(c *ledger.Context, p SaySkill) (any, error) {
	s, err := discussed(c, p.Skill)
	if err != nil {
		return nil, err
	}
	list := SkillCommentsOf(c.Tx, s)
	n := slices.IndexFunc(list, func(o SkillComment) bool { return o.ID == p.ID && o.DeletedAt == 0 })
	if n < 0 {
		return nil, ledger.Refuse(ledger.NotFound, nil, "Comment not found")
	}
	cm := list[n]
	agent, user := core.ActedBy(c)
	if cm.AuthorAgent != agent || cm.AuthorUser != user {
		if !p.Delete || !core.IsBoard(c) {
			return nil, ledger.Refuse(ledger.Forbidden, nil, "Only the author changes a comment")
		}
	}
	action := "company.skill_comment_updated"
	cm.UpdatedAt = core.TimeOf(c.Now)
	if p.Delete {
		action, cm.Body, cm.DeletedAt = "company.skill_comment_deleted", "", cm.UpdatedAt
	} else if err := checkSaid(p.Body); err != nil {
		return nil, err
	} else {
		cm.Body = p.Body
	}
	key := skillRowKey(s.ID, cm.Seq)
	if p.Delete && !slices.ContainsFunc(list, func(o SkillComment) bool { return string(o.Parent) == cm.ID }) {
		skillComments.Delete(c.Tx, s.Company, key)
	} else {
		skillComments.Put(c.Tx, s.Company, key, cm)
	}
	c.Record(cm.change(action))
	return cm, nil
}

func saveSkillInput(c *ledger.Context, p SaveSkillInput) (any, error) {
	s, err := changedSkill(c, p.Skill)
	if err != nil {
		return nil, err
	}
	key, action := s.ID+"."+p.ID, "company.skill_test_input_updated"
	in, ok := skillTestInputs.Get(c.Tx, s.Company, key)
	now := core.TimeOf(c.Now)
	switch {
	case !core.IsID(p.ID):
		return nil, ledger.Refuse(ledger.Invalid, nil, "malformed ID of an input")
	case !ok && (p.Delete || p.Name == nil || p.Content == nil):
		return nil, ledger.Refuse(ledger.NotFound, nil, "Test input not found")
	case !ok && len(SkillInputsOf(c.Tx, s)) >= MaxSkillInputs:
		return nil, ledger.Refuse(ledger.Unprocessable, nil, "A skill can have at most %d test inputs", MaxSkillInputs)
	case !ok:
		in, action = SkillTestInput{ID: p.ID, Company: s.Company, Skill: s.ID, CreatedBy: core.NullText(c.Cmd.Actor.ID),
			CreatedAt: now}, "company.skill_test_input_created"
	}
	core.Assign(&in.Name, p.Name)
	core.Assign(&in.Content, p.Content)
	in.UpdatedAt = now
	if strings.TrimSpace(in.Name) == "" || len(in.Name) > entity.MaxName || strings.TrimSpace(in.Content) == "" ||
		len(in.Content) > MaxSkillInput {
		return nil, ledger.Refuse(ledger.Invalid, nil,
			"An input needs a name of at most %d bytes and a content of at most %d", entity.MaxName, MaxSkillInput)
	}
	if p.Delete {
		action = "company.skill_test_input_deleted"
		skillTestInputs.Delete(c.Tx, s.Company, key)
	} else {
		skillTestInputs.Put(c.Tx, s.Company, key, in)
	}
	c.Record(ledger.Change{Action: action, EntityType: "company_skill_test_input", EntityID: in.ID,
		Details: core.Object{}.Str("skillId", s.ID).Str("name", in.Name).Close()})
	return in, nil
}

// startSkillTest makes the issue in which an agent tests a skill.
func startSkillTest(c *ledger.Context, p StartSkillTest) (any, error) {
	s, err := changedSkill(c, p.Skill)
	if err != nil {
		return nil, err
	}
	if p.Input != "" {
		in, ok := skillTestInputs.Get(c.Tx, s.Company, s.ID+"."+p.Input)
		if !ok {
			return nil, ledger.Refuse(ledger.NotFound, nil, "Test input not found")
		}
		p.Content = in.Content
	}
	version, number := cmp.Or(p.Version, s.Version), uint64(0)
	for _, v := range SkillVersionsOf(c.Tx, s) {
		if v.ID == version {
			number = v.Number
		}
	}
	list := SkillTestsOf(c.Tx, s)
	a, ok := entity.AgentTable.Get(c.Tx, s.Company, p.Agent)
	switch {
	case !core.IsID(p.ID) || slices.ContainsFunc(list, func(t SkillTest) bool { return t.ID == p.ID }):
		return nil, ledger.Refuse(ledger.Invalid, nil, "malformed ID of a test")
	case strings.TrimSpace(p.Content) == "" || len(p.Content) > MaxSkillInput:
		return nil, ledger.Refuse(ledger.Invalid, nil, "The content that a skill is tested with has at most %d bytes",
			MaxSkillInput)
	case number == 0:
		return nil, ledger.Refuse(ledger.NotFound, nil, "Skill version not found")
	case !ok || a.Status == entity.AgentTerminated:
		return nil, ledger.Refuse(ledger.NotFound, nil, "Agent not found")
	}
	now := core.TimeOf(c.Now)
	t := SkillTest{ID: p.ID, Company: s.Company, Skill: s.ID, Input: core.NullText(p.Input), Content: p.Content,
		Version: version, Agent: a.ID, Issue: p.Issue, CreatedAt: now, UpdatedAt: now, Seq: nextSkillTest(list)}
	if len(list) >= MaxSkillTests {
		skillTests.Delete(c.Tx, s.Company, skillRowKey(s.ID, list[len(list)-1].Seq))
	}
	text := "Try the skill " + s.Name + " on the input below. Its files as they are to be tried: GET /api/companies/" +
		string(s.Company) + "/skills/" + s.ID + "/versions/" + version +
		"\n\nFollow it as you would in earnest, but change nothing outside this issue. Write what comes of it as the " +
		"document `" + SkillTestOutput +
		"` of this issue, then set the issue to done; if the skill can not be followed, say in that document where it " +
		"fails, and set it to blocked.\n\n## Input\n\n" + p.Content
	if _, err := company.MakeIssue(c, company.CreateIssue{ID: p.Issue, Title: "Try the skill " + s.Name, Description: text,
		Status: entity.IssueTodo, Assignee: a.ID, WorkMode: "skill_test", HarnessKind: "skill_test",
		OriginKind: originSkillTest, OriginID: t.ID, AllowDuplicate: true, Many: true}); err != nil {
		return nil, err
	}
	c.Record(ledger.Change{Action: "company.skill_test_run_created", EntityType: "company_skill_test_run", EntityID: t.ID,
		Details: core.Object{}.Str("skillId", s.ID).Null("inputId", p.Input).
			Str("skillVersionId", version).Str("agentId", a.ID).Str("issueId", t.Issue).Close()})
	return skillTests.Put(c.Tx, s.Company, skillRowKey(s.ID, t.Seq), t), nil
}

// keepSkillTest adds a test that was made elsewhere.
func keepSkillTest(c *ledger.Context, p KeepSkillTest) (any, error) {
	s, err := changedSkill(c, p.Skill)
	if err != nil {
		return nil, err
	}
	list := SkillTestsOf(c.Tx, s)
	switch {
	case !core.IsID(p.ID) || slices.ContainsFunc(list, func(t SkillTest) bool { return t.ID == p.ID }):
		return nil, ledger.Refuse(ledger.Invalid, nil, "malformed ID of a test")
	case strings.TrimSpace(p.Content) == "" || len(p.Content) > MaxSkillInput || len(p.Output) > MaxSkillInput:
		return nil, ledger.Refuse(ledger.Unprocessable, nil, "A test has a content, and an output, of at most %d bytes",
			MaxSkillInput)
	case !slices.Contains([]string{"succeeded", "failed", "cancelled"}, p.Status):
		return nil, ledger.Refuse(ledger.Unprocessable, nil, "unknown outcome %q of a test", p.Status)
	case len(list) >= MaxSkillTests:
		return nil, ledger.Refuse(ledger.Unprocessable, nil, "A skill can have at most %d tests", MaxSkillTests)
	case p.Agent != "" && !entity.AgentExists(c.Tx, s.Company, p.Agent):
		return nil, entity.ErrNoAgent()
	case p.Issue != "" && !c.Has(entity.IssueTable.Key(s.Company, p.Issue)):
		return nil, company.ErrNoIssue()
	}
	now := core.TimeOf(c.Now)
	t := SkillTest{ID: p.ID, Company: s.Company, Skill: s.ID, Input: core.NullText(p.Input), Content: p.Content,
		Version: s.Version, Agent: p.Agent, Issue: p.Issue,
		CreatedAt: now, UpdatedAt: now, Seq: nextSkillTest(list), Kept: p.Status, Output: p.Output}
	c.Record(ledger.Change{Action: "company.skill_test_run_kept", EntityType: "company_skill_test_run", EntityID: t.ID,
		Details: core.Object{}.Str("skillId", s.ID).Str("status", p.Status).Close()})
	return skillTests.Put(c.Tx, s.Company, skillRowKey(s.ID, t.Seq), t), nil
}

// nextSkillTest returns the number of a skill's next test. list is sorted newest first.
func nextSkillTest(list []SkillTest) uint64 {
	if len(list) == 0 {
		return 1
	}
	return list[0].Seq + 1
}

// forgetSkillTest deletes a test; its issue stays.
func forgetSkillTest(c *ledger.Context, p ForgetSkillTest) (any, error) {
	s, err := changedSkill(c, p.Skill)
	if err != nil {
		return nil, err
	}
	for _, t := range SkillTestsOf(c.Tx, s) {
		if t.ID == p.ID {
			skillTests.Delete(c.Tx, s.Company, skillRowKey(s.ID, t.Seq))
			c.Record(ledger.Change{Action: "company.skill_test_run_deleted", EntityType: "company_skill_test_run",
				EntityID: t.ID, Details: core.Object{}.Str("skillId", s.ID).Close()})
			return t, nil
		}
	}
	return nil, ledger.Refuse(ledger.NotFound, nil, "Test run not found")
}

// dropReviews deletes the comments, inputs and tests of a skill that is deleted.
func dropReviews(tx *ledger.Tx, s Skill) {
	for _, prefix := range [][]byte{skillComments.Key(s.Company, s.ID+"."), skillTestInputs.Key(s.Company, s.ID+"."),
		skillTests.Key(s.Company, s.ID+".")} {
		for k := range tx.Prefix(prefix) {
			tx.Delete(slices.Clone(k))
		}
	}
}
