package entity

import (
	"cmp"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

// A CompanyStatus says whether a company is at work. Persisted: do not rename.
type CompanyStatus string

const (
	CompanyActive   CompanyStatus = "active"
	CompanyPaused   CompanyStatus = "paused"
	CompanyArchived CompanyStatus = "archived"
	// CompanyDeleting is a company that several commands are removing. It is not shown.
	CompanyDeleting CompanyStatus = "deleting"
)

// A Company is the owner of agents and their work. Every other row belongs to one company.
type Company struct {
	ID                     ledger.CompanyID `cbor:"1,keyasint" json:"id"`
	Name                   string           `cbor:"2,keyasint" json:"name"`
	Description            core.NullText    `cbor:"3,keyasint,omitempty" json:"description"`
	Status                 CompanyStatus    `cbor:"4,keyasint" json:"status"`
	PauseReason            core.NullText    `cbor:"5,keyasint,omitempty" json:"pauseReason"`
	PausedAt               core.Time        `cbor:"6,keyasint,omitempty" json:"pausedAt"`
	IssuePrefix            string           `cbor:"7,keyasint" json:"issuePrefix"`
	IssueCounter           uint64           `cbor:"8,keyasint" json:"issueCounter"`
	DefaultResponsibleUser core.NullText    `cbor:"9,keyasint,omitempty" json:"defaultResponsibleUserId"`
	RequireHireApproval    bool             `cbor:"10,keyasint,omitempty" json:"requireBoardApprovalForNewAgents"`
	BrandColor             core.NullText    `cbor:"11,keyasint,omitempty" json:"brandColor"`
	LogoAsset              core.NullText    `cbor:"12,keyasint,omitempty" json:"logoAssetId"`
	AttachmentMaxBytes     int64            `cbor:"13,keyasint,omitempty" json:"attachmentMaxBytes"`
	CreatedAt              core.Time        `cbor:"14,keyasint" json:"createdAt"`
	UpdatedAt              core.Time        `cbor:"15,keyasint" json:"updatedAt"`
	// NoStrategyGate lets a CEO start work before a strategy is approved. Strategy is the first
	// approval of one.
	NoStrategyGate bool          `cbor:"20,keyasint,omitempty" json:"-"`
	Strategy       core.NullText `cbor:"21,keyasint,omitempty" json:"strategyApprovalId"`
	// Feedback is the board's consent about votes on what agents write.
	Feedback FeedbackConsent `cbor:"22,keyasint,omitempty" json:"-"`
}

// A FeedbackConsent says whether votes may be exported, and who consented under which terms.
// Nothing leaves the mesh by itself: consent only allows reading the traces.
type FeedbackConsent struct {
	Sharing bool          `cbor:"1,keyasint,omitempty"`
	At      core.Time     `cbor:"2,keyasint,omitempty"`
	By      core.NullText `cbor:"3,keyasint,omitempty"`
	Terms   core.NullText `cbor:"4,keyasint,omitempty"`
}

var CompanyTable = ledger.NewTable[ledger.CompanyID, Company]("company")

const (
	// MaxName bounds names, in bytes.
	MaxName = 500
)

// SaveCompany is the payload of company.create, company.update and company.branding. In an
// update nil keeps a field and an empty value clears it.
type SaveCompany struct {
	ID                  ledger.CompanyID `cbor:"1,keyasint"` // for company.create; other commands name it themselves
	Name                *string          `cbor:"2,keyasint,omitempty"`
	Description         *string          `cbor:"3,keyasint,omitempty"`
	Budget              *core.Money      `cbor:"4,keyasint,omitempty"` // per month
	RequireHireApproval *bool            `cbor:"5,keyasint,omitempty"`
	BrandColor          *string          `cbor:"6,keyasint,omitempty"`
	LogoAsset           *string          `cbor:"7,keyasint,omitempty"`
	AttachmentMaxBytes  *int64           `cbor:"8,keyasint,omitempty"`
	ResponsibleUser     *string          `cbor:"9,keyasint,omitempty"`
	RequireStrategy     *bool            `cbor:"20,keyasint,omitempty"`
	FeedbackSharing     *bool            `cbor:"21,keyasint,omitempty"`
	FeedbackTerms       *string          `cbor:"22,keyasint,omitempty"`
}

// CompanyOf returns the company with an ID.
func CompanyOf(tx *ledger.Tx, id ledger.CompanyID) (Company, bool) {
	if !core.IsID(id) {
		return Company{}, false
	}
	row, ok := CompanyTable.Get(tx, id, id)
	return row, ok && row.Status != CompanyDeleting
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

// UnfinishedDeletions returns the companies whose deletion is not finished, so that the
// leader can continue it.
func UnfinishedDeletions(tx *ledger.Tx) []ledger.CompanyID {
	var out []ledger.CompanyID
	for _, k := range tx.Prefix(DeletingKey("")) {
		out = append(out, ledger.CompanyID(k))
	}
	return out
}

func DeletingKey(id string) []byte { return ledger.Key("company-deleting", id) }

func (row Company) Check() error {
	switch {
	case strings.TrimSpace(row.Name) == "":
		return ledger.Refuse(ledger.Invalid, nil, "A company needs a name")
	case len(row.Name) > MaxName || len(row.Description) > MaxText || len(row.BrandColor) > 50 ||
		len(row.LogoAsset) > 100 || len(row.Feedback.Terms) > 100:
		return ledger.Refuse(ledger.TooLarge, nil, "The company's text is too long")
	case row.AttachmentMaxBytes < 0:
		return ledger.Refuse(ledger.Invalid, nil, "attachmentMaxBytes is negative")
	}
	return nil
}

func (row Company) With(p SaveCompany) Company {
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

// Details lists the fields of p for the activity log.
func (p SaveCompany) Details() []byte {
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

// Pause returns the company paused for a reason. A paused company does not change, except
// that a pause by a person replaces one by the budget.
func (row Company) Pause(reason string, now core.Time) (Company, error) {
	if row.Status == CompanyArchived {
		return row, core.Illegal("companyId", string(row.ID), row.Status, CompanyPaused, []CompanyStatus{CompanyActive},
			"Cannot pause archived company")
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

// Resume returns the company active, from paused or archived.
func (row Company) Resume(now core.Time) Company {
	if row.Status != CompanyActive {
		row.Status, row.PauseReason, row.PausedAt, row.UpdatedAt = CompanyActive, "", 0, now
	}
	return row
}

// Archive returns the company archived.
func (row Company) Archive(now core.Time) Company {
	if row.Status != CompanyArchived {
		row.Status, row.PauseReason, row.PausedAt, row.UpdatedAt = CompanyArchived, "", 0, now
	}
	return row
}

// Rests reports whether the company is paused or archived, so that nothing may run in it.
func (row Company) Rests() bool { return row.Status == CompanyPaused || row.Status == CompanyArchived }

// Drafting reports whether the company's CEO can only draft, see strategy.go of company.
func (row Company) Drafting() bool { return !row.NoStrategyGate && row.Strategy == "" }

func BlobKey(sha256 string, company ledger.CompanyID) []byte {
	return ledger.Key("blob", sha256, string(company))
}
