package company

import (
	"cmp"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

// A CompanyStatus is whether a company is at work. Persisted: do not rename.
type CompanyStatus string

const (
	CompanyActive   CompanyStatus = "active"
	CompanyPaused   CompanyStatus = "paused"
	CompanyArchived CompanyStatus = "archived"
	// CompanyDeleting is one that is being removed, in several commands. It is
	// shown to nobody.
	CompanyDeleting CompanyStatus = "deleting"
)

// A Company is what agents work for. Every other row belongs to exactly one.
type Company struct {
	ID                     string        `cbor:"1,keyasint" json:"id"`
	Name                   string        `cbor:"2,keyasint" json:"name"`
	Description            core.NullText `cbor:"3,keyasint,omitempty" json:"description"`
	Status                 CompanyStatus `cbor:"4,keyasint" json:"status"`
	PauseReason            core.NullText `cbor:"5,keyasint,omitempty" json:"pauseReason"`
	PausedAt               core.Time     `cbor:"6,keyasint,omitempty" json:"pausedAt"`
	IssuePrefix            string        `cbor:"7,keyasint" json:"issuePrefix"`
	IssueCounter           uint64        `cbor:"8,keyasint" json:"issueCounter"`
	DefaultResponsibleUser core.NullText `cbor:"9,keyasint,omitempty" json:"defaultResponsibleUserId"`
	RequireHireApproval    bool          `cbor:"10,keyasint,omitempty" json:"requireBoardApprovalForNewAgents"`
	BrandColor             core.NullText `cbor:"11,keyasint,omitempty" json:"brandColor"`
	LogoAsset              core.NullText `cbor:"12,keyasint,omitempty" json:"logoAssetId"`
	AttachmentMaxBytes     int64         `cbor:"13,keyasint,omitempty" json:"attachmentMaxBytes"`
	CreatedAt              core.Time     `cbor:"14,keyasint" json:"createdAt"`
	UpdatedAt              core.Time     `cbor:"15,keyasint" json:"updatedAt"`
	// NoStrategyGate lets a CEO start work before a strategy is approved, and
	// Strategy is the first approval of one.
	NoStrategyGate bool          `cbor:"20,keyasint,omitempty" json:"-"`
	Strategy       core.NullText `cbor:"21,keyasint,omitempty" json:"strategyApprovalId"`
	// Feedback is what the board agreed to about votes on what agents write.
	Feedback FeedbackConsent `cbor:"22,keyasint,omitempty" json:"-"`
}

// A FeedbackConsent says whether votes may be handed on, and who agreed to that
// under which terms. Nothing leaves the mesh by itself: it only opens the traces.
type FeedbackConsent struct {
	Sharing bool          `cbor:"1,keyasint,omitempty"`
	At      core.Time     `cbor:"2,keyasint,omitempty"`
	By      core.NullText `cbor:"3,keyasint,omitempty"`
	Terms   core.NullText `cbor:"4,keyasint,omitempty"`
}

var CompanyTable = ledger.NewTable[Company]("company")

const (
	// MaxCompanies bounds the companies of a mesh: lists show all of them.
	MaxCompanies = 10_000
	// MaxName bounds names, in bytes.
	MaxName = 500
	// DefaultAttachmentBytes is what an attachment may have unless a company says otherwise.
	DefaultAttachmentBytes = 10 << 20
	// maxPrefixTries bounds the search for a free prefix: as many companies may
	// begin with the same three letters.
	maxPrefixTries = 1_000
	// deleteChunk bounds the keys that one company.delete removes, so that apply
	// stays short; each row may have a second key outside its company.
	deleteChunk = 2_000
)

const _ = uint(ledger.MaxTouched - 4*deleteChunk)

// SaveCompany is the payload of company.create, company.update and
// company.branding. A nil field keeps what is there, an empty one clears it.
type SaveCompany struct {
	ID                  string      `cbor:"1,keyasint"` // of company.create; others name it in the command
	Name                *string     `cbor:"2,keyasint,omitempty"`
	Description         *string     `cbor:"3,keyasint,omitempty"`
	Budget              *core.Money `cbor:"4,keyasint,omitempty"` // a month
	RequireHireApproval *bool       `cbor:"5,keyasint,omitempty"`
	BrandColor          *string     `cbor:"6,keyasint,omitempty"`
	LogoAsset           *string     `cbor:"7,keyasint,omitempty"`
	AttachmentMaxBytes  *int64      `cbor:"8,keyasint,omitempty"`
	ResponsibleUser     *string     `cbor:"9,keyasint,omitempty"`
	RequireStrategy     *bool       `cbor:"20,keyasint,omitempty"`
	FeedbackSharing     *bool       `cbor:"21,keyasint,omitempty"`
	FeedbackTerms       *string     `cbor:"22,keyasint,omitempty"`
}

// ChangeCompany is the payload of company.archive, company.pause,
// company.resume and company.delete, which name the company in the command.
type ChangeCompany struct{}

// A Deletion is what company.delete returns. It removes a bounded part; whoever
// asked goes on until it is done.
type Deletion struct {
	Done bool `cbor:"1,keyasint"`
}

const (
	KindCompanyCreate   = "company.create"
	KindCompanyUpdate   = "company.update"
	KindCompanyBranding = "company.branding"
	KindCompanyArchive  = "company.archive"
	KindCompanyPause    = "company.pause"
	KindCompanySettle   = "company.settle"
	KindCompanyResume   = "company.resume"
	KindCompanyDelete   = "company.delete"
)

var companyKinds = []Kind{
	{Name: KindCompanyCreate, From: FromBoard, Traits: AdminsOnly | Founds | Importable | EndsKeys, Do: ledger.Typed(createCompany)},
	{Name: KindCompanyUpdate, From: FromBoard, Traits: Importable | EndsKeys, Do: ledger.Typed(updateCompany)},
	{Name: KindCompanyBranding, From: FromBoard, Traits: EndsKeys, Do: ledger.Typed(brandCompany)},
	{Name: KindCompanyArchive, From: FromBoard, Traits: LeadersOnly | EndsKeys, Do: ledger.Typed(archiveCompany)},
	{Name: KindCompanyPause, From: FromBoard, Traits: LeadersOnly | EndsKeys, Do: ledger.Typed(pauseCompany)},
	{Name: KindCompanySettle, From: FromNode, Traits: EndsKeys, Do: ledger.Typed(settleCompany)},
	{Name: KindCompanyResume, From: FromBoard, Traits: LeadersOnly | EndsKeys, Do: ledger.Typed(resumeCompany)},
	{Name: KindCompanyDelete, From: FromBoard | FromNode, Traits: LeadersOnly | WindsUp | EndsKeys, Do: ledger.Typed(deleteCompany)},
}

// CompanyOf returns the company with an ID.
func CompanyOf(tx *ledger.Tx, id string) (Company, bool) {
	if !core.IsID(id) {
		return Company{}, false
	}
	row, ok := CompanyTable.Get(tx, id, id)
	return row, ok && row.Status != CompanyDeleting
}

// CompanyByPrefix returns the company whose issues' identifiers begin with prefix.
func CompanyByPrefix(tx *ledger.Tx, prefix string) (Company, bool) {
	id, ok := tx.Get(core.PrefixKey(strings.ToUpper(prefix)))
	if !ok {
		return Company{}, false
	}
	return CompanyOf(tx, string(id))
}

// Companies returns all companies, oldest first.
func Companies(tx *ledger.Tx) []Company {
	out := []Company{}
	for id := range core.CompanyIDs(tx) {
		if row, ok := CompanyOf(tx, id); ok {
			out = append(out, row)
		}
	}
	slices.SortStableFunc(out, func(a, b Company) int { return cmp.Compare(a.CreatedAt, b.CreatedAt) })
	return out
}

// UnfinishedDeletions returns the companies that company.delete has begun to
// remove and not finished, so that somebody may go on with them.
func UnfinishedDeletions(tx *ledger.Tx) []string {
	var out []string
	for _, k := range tx.Prefix(deletingKey("")) {
		out = append(out, string(k))
	}
	return out
}

func deletingKey(id string) []byte { return ledger.Key("company-deleting", id) }

// prefixOf is what a name's letters make the prefix begin with: the first
// three, in upper case.
func prefixOf(name string) string {
	var b []byte
	for i := 0; i < len(name) && len(b) < 3; i++ {
		switch c := name[i]; {
		case c >= 'a' && c <= 'z':
			b = append(b, c-'a'+'A')
		case c >= 'A' && c <= 'Z':
			b = append(b, c)
		}
	}
	if len(b) == 0 {
		return "CMP"
	}
	return string(b)
}

// freePrefix appends an A until nobody has the prefix.
func freePrefix(tx *ledger.Tx, name string) (string, error) {
	base := prefixOf(name)
	for n := range maxPrefixTries {
		prefix := base + strings.Repeat("A", n)
		if !tx.Has(core.PrefixKey(prefix)) {
			return prefix, nil
		}
	}
	return "", ledger.Refuse(ledger.Conflict, nil, "No issue prefix is free for %q", name)
}

func (row Company) check() error {
	switch {
	case strings.TrimSpace(row.Name) == "":
		return ledger.Refuse(ledger.Invalid, nil, "A company needs a name")
	case len(row.Name) > MaxName || len(row.Description) > MaxText || len(row.BrandColor) > 50 || len(row.LogoAsset) > 100 || len(row.Feedback.Terms) > 100:
		return ledger.Refuse(ledger.TooLarge, nil, "The company's text is too long")
	case row.AttachmentMaxBytes < 0:
		return ledger.Refuse(ledger.Invalid, nil, "attachmentMaxBytes is negative")
	}
	return nil
}

// checkResponsible refuses a user who has nothing to do with the company. Whom was
// names already may stay, such as who founds it.
func (row Company) checkResponsible(tx *ledger.Tx, was Company) error {
	u := row.DefaultResponsibleUser
	if u == "" || u == was.DefaultResponsibleUser || Ask.Belongs(tx, row.ID, string(u)) {
		return nil
	}
	return ledger.Refuse(ledger.NotFound, nil, "Responsible user not found")
}

func (row Company) with(p SaveCompany) Company {
	core.Assign(&row.Name, p.Name)
	core.AssignText(&row.Description, p.Description)
	core.Assign(&row.RequireHireApproval, p.RequireHireApproval)
	core.AssignText(&row.BrandColor, p.BrandColor)
	core.AssignText(&row.LogoAsset, p.LogoAsset)
	core.Assign(&row.AttachmentMaxBytes, p.AttachmentMaxBytes)
	core.AssignText(&row.DefaultResponsibleUser, p.ResponsibleUser)
	if p.RequireStrategy != nil {
		row.NoStrategyGate = !*p.RequireStrategy
	}
	return row
}

// details lists what p sets, for the activity log.
func (p SaveCompany) details() []byte {
	o := core.Object{}
	if p.Name != nil {
		o = o.Str("name", *p.Name)
	}
	if p.Description != nil {
		o = o.Null("description", core.Snippet(*p.Description, 500))
	}
	if p.RequireHireApproval != nil {
		o = o.Bool("requireBoardApprovalForNewAgents", *p.RequireHireApproval)
	}
	if p.RequireStrategy != nil {
		o = o.Bool("requireBoardApprovalForCeoStrategy", *p.RequireStrategy)
	}
	if p.BrandColor != nil {
		o = o.Null("brandColor", *p.BrandColor)
	}
	if p.LogoAsset != nil {
		o = o.Null("logoAssetId", *p.LogoAsset)
	}
	if p.AttachmentMaxBytes != nil {
		o = o.Int("attachmentMaxBytes", *p.AttachmentMaxBytes)
	}
	if p.Budget != nil {
		o = o.Int("budgetMonthlyCents", p.Budget.Cents())
	}
	return o.Close()
}

func createCompany(c *ledger.Context, p SaveCompany) (any, error) {
	if p.ID != c.Cmd.Company {
		return nil, ledger.Refuse(ledger.Invalid, nil, "the command is of another company")
	}
	if err := core.CheckNewID(c.Tx, p.ID); err != nil {
		return nil, err
	}
	if c.Tx.Has(CompanyTable.Key(p.ID, p.ID)) {
		return nil, ledger.Refuse(ledger.Conflict, nil, "ID %s is in use", p.ID)
	}
	n := 0
	for range core.CompanyIDs(c.Tx) {
		if n++; n >= MaxCompanies {
			return nil, ledger.Refuse(ledger.Conflict, nil, "The mesh has %d companies already", MaxCompanies)
		}
	}
	now := core.TimeOf(c.Now)
	row := Company{ID: p.ID, Status: CompanyActive, AttachmentMaxBytes: DefaultAttachmentBytes, CreatedAt: now, UpdatedAt: now}
	if core.IsBoard(c) {
		row.DefaultResponsibleUser = core.NullText(c.Cmd.Actor.ID)
	}
	founded := row
	row = row.with(p)
	if err := row.check(); err != nil {
		return nil, err
	}
	if err := row.checkResponsible(c.Tx, founded); err != nil {
		return nil, err
	}
	if err := checkCompany(c.Tx, row, p); err != nil {
		return nil, err
	}
	var err error
	if row.IssuePrefix, err = freePrefix(c.Tx, row.Name); err != nil {
		return nil, err
	}
	c.Set(core.CompanyIDKey(row.ID), nil)
	c.Set(core.PrefixKey(row.IssuePrefix), []byte(row.ID))
	CompanyTable.Put(c.Tx, row.ID, row.ID, row)
	c.Record(ledger.Change{Action: "company.created", EntityType: "company", EntityID: row.ID, Details: core.Object{}.Str("name", row.Name).Close()})
	return row, companyStored(c, Company{}, row, p)
}

// Present returns the command's company.
func Present(c *ledger.Context) (Company, error) {
	row, ok := CompanyOf(c.Tx, c.Cmd.Company)
	if !ok {
		return row, ErrNoCompany()
	}
	return row, nil
}

func ErrNoCompany() error { return ledger.Refuse(ledger.NotFound, nil, "Company not found") }

func updateCompany(c *ledger.Context, p SaveCompany) (any, error) {
	return saveCompany(c, p, "company.updated")
}

func brandCompany(c *ledger.Context, p SaveCompany) (any, error) {
	return saveCompany(c, SaveCompany{Name: p.Name, Description: p.Description, BrandColor: p.BrandColor, LogoAsset: p.LogoAsset}, "company.branding_updated")
}

func saveCompany(c *ledger.Context, p SaveCompany, action string) (any, error) {
	row, err := Present(c)
	if err != nil {
		return nil, err
	}
	was := row
	row = row.with(p)
	row.Feedback = row.Feedback.consent(c, p)
	row.UpdatedAt = core.TimeOf(c.Now)
	if err := row.check(); err != nil {
		return nil, err
	}
	if err := row.checkResponsible(c.Tx, was); err != nil {
		return nil, err
	}
	if err := checkCompany(c.Tx, row, p); err != nil {
		return nil, err
	}
	CompanyTable.Put(c.Tx, row.ID, row.ID, row)
	c.Record(ledger.Change{Action: action, EntityType: "company", EntityID: row.ID, Details: p.details()})
	if err := companyStored(c, was, row, p); err != nil {
		return nil, err
	}
	row, _ = CompanyTable.Get(c.Tx, row.ID, row.ID) // a budget may have stopped it
	return row, nil
}

// Pause returns the company at rest for a reason. A paused company stays as it is,
// but a pause by a person outlasts one by the budget.
func (row Company) Pause(reason string, now core.Time) (Company, error) {
	if row.Status == CompanyArchived {
		return row, core.Illegal("companyId", row.ID, row.Status, CompanyPaused, []CompanyStatus{CompanyActive}, "Cannot pause archived company")
	}
	if row.Status == CompanyPaused {
		if row.PauseReason == PausedForBudget && reason != PausedForBudget {
			row.PauseReason, row.UpdatedAt = core.NullText(reason), now
		}
		return row, nil
	}
	row.Status, row.PauseReason, row.PausedAt, row.UpdatedAt = CompanyPaused, core.NullText(reason), now, now
	return row, nil
}

// Resume returns the company at work again; an archived one comes back, too.
func (row Company) Resume(now core.Time) Company {
	if row.Status != CompanyActive {
		row.Status, row.PauseReason, row.PausedAt, row.UpdatedAt = CompanyActive, "", 0, now
	}
	return row
}

// Archive returns the company put away.
func (row Company) Archive(now core.Time) Company {
	if row.Status != CompanyArchived {
		row.Status, row.PauseReason, row.PausedAt, row.UpdatedAt = CompanyArchived, "", 0, now
	}
	return row
}

func archiveCompany(c *ledger.Context, _ ChangeCompany) (any, error) {
	row, err := Present(c)
	if err != nil {
		return nil, err
	}
	return row.Archive(core.TimeOf(c.Now)).settle(c, "company.archived", "Cancelled: the company was archived"), nil
}

func pauseCompany(c *ledger.Context, _ ChangeCompany) (any, error) {
	row, err := Present(c)
	if err != nil {
		return nil, err
	}
	if row, err = row.Pause("manual", core.TimeOf(c.Now)); err != nil {
		return nil, err
	}
	return row.settle(c, "company.paused", "Cancelled: the company was paused"), nil
}

// settle stores a company that stopped, and ends its runs; those that are more than
// one command may end, the leader's company.settle does.
func (row Company) settle(c *ledger.Context, action, why string) Company {
	CompanyTable.Put(c.Tx, row.ID, row.ID, row)
	c.Record(ledger.Change{Action: action, EntityType: "company", EntityID: row.ID})
	for _, r := range RunsInScope(c.Tx, row.ID, ScopeCompany, row.ID, MaxStoppedRuns) {
		DenyLive(c, r, DeniedCompany, why)
	}
	return row
}

func resumeCompany(c *ledger.Context, _ ChangeCompany) (any, error) {
	row, err := Present(c)
	if err != nil {
		return nil, err
	}
	if err := Ask.MayResume(c, ScopeCompany, row.ID); err != nil {
		return nil, err
	}
	row = row.Resume(core.TimeOf(c.Now))
	CompanyTable.Put(c.Tx, row.ID, row.ID, row)
	c.Record(ledger.Change{Action: "company.resumed", EntityType: "company", EntityID: row.ID})
	return row, nil
}

// deleteCompany hides a company at once and removes its rows a part at a time.
// Its entries stay: the chain keeps the history.
func deleteCompany(c *ledger.Context, _ ChangeCompany) (any, error) {
	row, ok := CompanyTable.Get(c.Tx, c.Cmd.Company, c.Cmd.Company)
	if !ok {
		return nil, ErrNoCompany()
	}
	if row.Status != CompanyDeleting {
		c.Delete(core.CompanyIDKey(row.ID))
		c.Delete(core.PrefixKey(row.IssuePrefix))
		c.Set(deletingKey(row.ID), nil)
		row.Status, row.UpdatedAt = CompanyDeleting, core.TimeOf(c.Now)
		CompanyTable.Put(c.Tx, row.ID, row.ID, row)
		c.Record(ledger.Change{Action: "company.deleted", EntityType: "company", EntityID: row.ID, Details: core.Object{}.Str("name", row.Name).Close()})
	}
	if live := RunsInScope(c.Tx, row.ID, ScopeCompany, row.ID, MaxStoppedRuns); len(live) > 0 {
		for _, r := range live {
			cancelLive(c, r, "Cancelled: the company was deleted", c.Cmd.Actor)
		}
		return Deletion{}, nil
	}
	if !RemoveRows(c.Tx, row.ID) {
		return Deletion{}, nil
	}
	CompanyTable.Delete(c.Tx, row.ID, row.ID)
	c.Delete(deletingKey(row.ID))
	return Deletion{Done: true}, nil
}

// RemoveRows removes up to deleteChunk keys of a company and what names them
// from outside; it reports whether none is left but the company's own row. What
// the ledger keeps of a company (tables whose names begin with ~) stays.
func RemoveRows(tx *ledger.Tx, company string) (done bool) {
	prefix := ledger.Key("c", company, "")
	self := string(CompanyTable.Key(company, company))
	keys := make([]string, 0, deleteChunk)
	done = true
	for k, v := range tx.Prefix(prefix) {
		rest := string(k[len(prefix):])
		if strings.HasPrefix(rest, "~") || string(k) == self {
			continue
		}
		if len(keys) == deleteChunk {
			done = false
			break
		}
		keys = append(keys, string(k))
		table, id, _ := strings.Cut(rest, "/")
		forget(tx, table, id, v)
	}
	for _, k := range keys {
		tx.Delete([]byte(k))
	}
	return done
}

// forgetKernel are the tables of the kernel whose rows are named from outside their
// company.
var forgetKernel = map[string]func(tx *ledger.Tx, id string, row []byte){
	"issue": func(tx *ledger.Tx, id string, row []byte) {
		tx.Delete(IssueCompanyKey(id))
		tx.Delete(IdentifierKey(core.DecodeRow[Issue](row).Identifier))
	},
	"label": func(tx *ledger.Tx, id string, _ []byte) { tx.Delete(LabelCompanyKey(id)) },
	"run": func(tx *ledger.Tx, id string, row []byte) {
		r := core.DecodeRow[Run](row)
		tx.Delete(RunCompanyKey(id))
		tx.Delete(QueueKey(r))
		tx.Delete(SessionKey(r.Session, id))
		forgetLog(tx, r)
	},
}

// consent notes what the board agrees to; by whom and when with the first yes.
func (f FeedbackConsent) consent(c *ledger.Context, p SaveCompany) FeedbackConsent {
	if p.FeedbackSharing != nil && *p.FeedbackSharing != f.Sharing {
		if f = (FeedbackConsent{Terms: f.Terms}); *p.FeedbackSharing {
			f.Sharing, f.At, f.By = true, core.TimeOf(c.Now), core.NullText(c.Cmd.Actor.ID)
		}
	}
	core.AssignText(&f.Terms, p.FeedbackTerms)
	return f
}
