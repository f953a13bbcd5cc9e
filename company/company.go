package company

import (
	"strings"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

const (
	// MaxCompanies bounds the companies of a mesh: lists show all of them.
	MaxCompanies = 10_000
	// DefaultAttachmentBytes bounds an attachment in a company that sets no limit.
	DefaultAttachmentBytes = 10 << 20
	// maxPrefixTries bounds the search for a free prefix, and so the number of companies
	// whose names begin with the same three letters.
	maxPrefixTries = 1_000
	// deleteChunk bounds the keys that one company.delete removes, so that apply stays
	// short. Each row may have a second key outside its company.
	deleteChunk = 2_000
)

const _ = uint(ledger.MaxTouched - 4*deleteChunk)

// ChangeCompany is the payload of company.archive, company.pause, company.resume and
// company.delete. The command itself names the company.
type ChangeCompany struct{}

// A Deletion is the answer of company.delete. One command removes a bounded part; the
// caller repeats it until Done.
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
	{Name: KindCompanyCreate, From: FromBoard, Traits: AdminsOnly | Founds | Importable | EndsKeys, Weight: Weights.SetUp,
		Do: ledger.Typed(createCompany)},
	{Name: KindCompanyUpdate, From: FromBoard, Traits: Importable | EndsKeys, Weight: Weights.SetUp,
		Do: ledger.Typed(updateCompany)},
	{Name: KindCompanyBranding, From: FromBoard, Traits: EndsKeys, Weight: Weights.SetUp, Do: ledger.Typed(brandCompany)},
	{Name: KindCompanyArchive, From: FromBoard, Traits: LeadersOnly | EndsKeys, Weight: Weights.Retires,
		Do: ledger.Typed(archiveCompany)},
	{Name: KindCompanyPause, From: FromBoard, Traits: LeadersOnly | EndsKeys, Weight: Weights.Halting,
		Do: ledger.Typed(pauseCompany)},
	{Name: KindCompanySettle, From: FromNode, Traits: EndsKeys, Weight: Weights.ByNodes, Do: ledger.Typed(settleCompany)},
	{Name: KindCompanyResume, From: FromBoard, Traits: LeadersOnly | EndsKeys, Weight: Weights.Steering,
		Do: ledger.Typed(resumeCompany)},
	{Name: KindCompanyDelete, From: FromBoard | FromNode, Traits: LeadersOnly | WindsUp | EndsKeys, Weight: Weights.Ends,
		Do: ledger.Typed(deleteCompany)},
}

// prefixOf returns the first three letters of a name in upper case.
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

// freePrefix appends an A until no company has the prefix.
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

// checkResponsible refuses a responsible user who does not belong to the company. The
// user whom was already names may stay, such as the founder.
func checkResponsible(tx *ledger.Tx, row entity.Company, was entity.Company) error {
	u := row.DefaultResponsibleUser
	if u == "" || u == was.DefaultResponsibleUser || Ask.Belongs(tx, row.ID, string(u)) {
		return nil
	}
	return ledger.Refuse(ledger.NotFound, nil, "Responsible user not found")
}

func createCompany(c *ledger.Context, p entity.SaveCompany) (any, error) {
	if p.ID != c.Cmd.Company {
		return nil, ledger.Refuse(ledger.Invalid, nil, "the command is of another company")
	}
	if err := core.CheckNewID(c.Tx, string(p.ID)); err != nil {
		return nil, err
	}
	if c.Tx.Has(entity.CompanyTable.Key(p.ID, p.ID)) {
		return nil, ledger.Refuse(ledger.Conflict, nil, "ID %s is in use", p.ID)
	}
	n := 0
	for range core.CompanyIDs(c.Tx) {
		if n++; n >= MaxCompanies {
			return nil, ledger.Refuse(ledger.Conflict, nil, "The mesh has %d companies already", MaxCompanies)
		}
	}
	now := core.TimeOf(c.Now)
	row := entity.Company{ID: p.ID, Status: entity.CompanyActive, AttachmentMaxBytes: DefaultAttachmentBytes,
		CreatedAt: now, UpdatedAt: now}
	if core.IsBoard(c) {
		row.DefaultResponsibleUser = core.NullText(c.Cmd.Actor.ID)
	}
	founded := row
	row = row.With(p)
	if err := row.Check(); err != nil {
		return nil, err
	}
	if err := checkResponsible(c.Tx, row, founded); err != nil {
		return nil, err
	}
	if err := checkCompany(c.Tx, row, p); err != nil {
		return nil, err
	}
	var err error
	if row.IssuePrefix, err = freePrefix(c.Tx, row.Name); err != nil {
		return nil, err
	}
	c.Set(core.CompanyIDKey(string(row.ID)), nil)
	c.Set(core.PrefixKey(row.IssuePrefix), []byte(row.ID))
	entity.CompanyTable.Put(c.Tx, row.ID, row.ID, row)
	c.Record(ledger.Change{Action: "company.created", EntityType: "company", EntityID: string(row.ID),
		Details: core.Object{}.Str("name", row.Name).Close()})
	return row, companyStored(c, entity.Company{}, row, p)
}

// Present returns the command's company.
func Present(c *ledger.Context) (entity.Company, error) {
	row, ok := entity.CompanyOf(c.Tx, c.Cmd.Company)
	if !ok {
		return row, ErrNoCompany()
	}
	return row, nil
}

func ErrNoCompany() error { return ledger.Refuse(ledger.NotFound, nil, "Company not found") }

func updateCompany(c *ledger.Context, p entity.SaveCompany) (any, error) {
	return saveCompany(c, p, "company.updated")
}

func brandCompany(c *ledger.Context, p entity.SaveCompany) (any, error) {
	return saveCompany(c, entity.SaveCompany{Name: p.Name, Description: p.Description, BrandColor: p.BrandColor,
		LogoAsset: p.LogoAsset}, "company.branding_updated")
}

func saveCompany(c *ledger.Context, p entity.SaveCompany, action string) (any, error) {
	row, err := Present(c)
	if err != nil {
		return nil, err
	}
	was := row
	row = row.With(p)
	row.Feedback = consentTo(c, row.Feedback, p)
	row.UpdatedAt = core.TimeOf(c.Now)
	if err := row.Check(); err != nil {
		return nil, err
	}
	if err := checkResponsible(c.Tx, row, was); err != nil {
		return nil, err
	}
	if err := checkCompany(c.Tx, row, p); err != nil {
		return nil, err
	}
	entity.CompanyTable.Put(c.Tx, row.ID, row.ID, row)
	c.Record(ledger.Change{Action: action, EntityType: "company", EntityID: string(row.ID), Details: p.Details()})
	if err := companyStored(c, was, row, p); err != nil {
		return nil, err
	}
	row, _ = entity.CompanyTable.Get(c.Tx, row.ID, row.ID) // the budget may have paused it
	return row, nil
}

func archiveCompany(c *ledger.Context, _ ChangeCompany) (any, error) {
	row, err := Present(c)
	if err != nil {
		return nil, err
	}
	return storeStopped(c, row.Archive(core.TimeOf(c.Now)), "company.archived", "Cancelled: the company was archived"), nil
}

func pauseCompany(c *ledger.Context, _ ChangeCompany) (any, error) {
	row, err := Present(c)
	if err != nil {
		return nil, err
	}
	if row, err = row.Pause("manual", core.TimeOf(c.Now)); err != nil {
		return nil, err
	}
	return storeStopped(c, row, "company.paused", "Cancelled: the company was paused"), nil
}

// storeStopped stores a company that was stopped and ends its runs. The leader's
// company.settle ends those beyond the bound of one command.
func storeStopped(c *ledger.Context, row entity.Company, action, why string) entity.Company {
	entity.CompanyTable.Put(c.Tx, row.ID, row.ID, row)
	c.Record(ledger.Change{Action: action, EntityType: "company", EntityID: string(row.ID)})
	for _, r := range entity.RunsInScope(c.Tx, row.ID, entity.ScopeCompany, string(row.ID), MaxStoppedRuns) {
		DenyLive(c, r, DeniedCompany, why)
	}
	return row
}

func resumeCompany(c *ledger.Context, _ ChangeCompany) (any, error) {
	row, err := Present(c)
	if err != nil {
		return nil, err
	}
	if err := Ask.MayResume(c, entity.ScopeCompany, string(row.ID)); err != nil {
		return nil, err
	}
	row = row.Resume(core.TimeOf(c.Now))
	entity.CompanyTable.Put(c.Tx, row.ID, row.ID, row)
	c.Record(ledger.Change{Action: "company.resumed", EntityType: "company", EntityID: string(row.ID)})
	return row, nil
}

// deleteCompany hides a company at once and removes its rows in parts. Its entries stay:
// the chain keeps the history.
func deleteCompany(c *ledger.Context, _ ChangeCompany) (any, error) {
	row, ok := entity.CompanyTable.Get(c.Tx, c.Cmd.Company, c.Cmd.Company)
	if !ok {
		return nil, ErrNoCompany()
	}
	if row.Status != entity.CompanyDeleting {
		c.Delete(core.CompanyIDKey(string(row.ID)))
		c.Delete(core.PrefixKey(row.IssuePrefix))
		c.Set(entity.DeletingKey(string(row.ID)), nil)
		row.Status, row.UpdatedAt = entity.CompanyDeleting, core.TimeOf(c.Now)
		entity.CompanyTable.Put(c.Tx, row.ID, row.ID, row)
		c.Record(ledger.Change{Action: "company.deleted", EntityType: "company", EntityID: string(row.ID),
			Details: core.Object{}.Str("name", row.Name).Close()})
	}
	if live := entity.RunsInScope(c.Tx, row.ID, entity.ScopeCompany, string(row.ID), MaxStoppedRuns); len(live) > 0 {
		for _, r := range live {
			cancelLive(c, r, "Cancelled: the company was deleted", c.Cmd.Actor)
		}
		return Deletion{}, nil
	}
	if !RemoveRows(c.Tx, row.ID) {
		return Deletion{}, nil
	}
	entity.CompanyTable.Delete(c.Tx, row.ID, row.ID)
	c.Delete(entity.DeletingKey(string(row.ID)))
	return Deletion{Done: true}, nil
}

// RemoveRows removes up to deleteChunk keys of a company, with the references to them
// from outside. It reports whether only the company's own row is left. The ledger's own
// tables of a company, whose names begin with ~, stay.
func RemoveRows(tx *ledger.Tx, company ledger.CompanyID) (done bool) {
	prefix := ledger.Key("c", string(company), "")
	self := string(entity.CompanyTable.Key(company, company))
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

// forgetKernel lists the kernel's tables whose rows are referred to from outside their
// company.
var forgetKernel = map[string]func(tx *ledger.Tx, id string, row []byte){
	"issue": func(tx *ledger.Tx, id string, row []byte) {
		tx.Delete(entity.IssueCompanyKey(id))
		tx.Delete(entity.IdentifierKey(core.DecodeRow[entity.Issue](row).Identifier))
	},
	"label": func(tx *ledger.Tx, id string, _ []byte) { tx.Delete(entity.LabelCompanyKey(id)) },
	"run": func(tx *ledger.Tx, id string, row []byte) {
		r := core.DecodeRow[entity.Run](row)
		tx.Delete(entity.RunCompanyKey(id))
		tx.Delete(entity.QueueKey(r))
		tx.Delete(entity.SessionKey(r.Session, id))
		forgetLog(tx, r)
	},
}

// consentTo stores the board's consent, and with the first one who gave it and when.
func consentTo(c *ledger.Context, f entity.FeedbackConsent, p entity.SaveCompany) entity.FeedbackConsent {
	if p.FeedbackSharing != nil && *p.FeedbackSharing != f.Sharing {
		if f = (entity.FeedbackConsent{Terms: f.Terms}); *p.FeedbackSharing {
			f.Sharing, f.At, f.By = true, core.TimeOf(c.Now), core.NullText(c.Cmd.Actor.ID)
		}
	}
	core.AssignText(&f.Terms, p.FeedbackTerms)
	return f
}
