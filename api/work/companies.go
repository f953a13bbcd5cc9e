package work

import (
	"time"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/company/rules"
	"github.com/selvage-mesh/selvage/ledger"
)

// newCompany is the body that creates a company.
type newCompany struct {
	Name               string          `json:"name" minLength:"1" maxLength:"500" maxBytes:"500"`
	Description        api.Opt[string] `json:"description" maxLength:"200000" maxBytes:"200000"`
	BudgetMonthlyCents int64           `json:"budgetMonthlyCents,omitempty" minimum:"0" maximum:"1000000000000"`
	ResponsibleUser    api.Opt[string] `json:"defaultResponsibleUserId" minLength:"1" maxLength:"200"`
	BrandColor         api.Opt[string] `json:"brandColor" maxLength:"50" maxBytes:"50"`
}

// patchCompany is the body that changes a company.
type patchCompany struct {
	Name                *string         `json:"name,omitempty" minLength:"1" maxLength:"500" maxBytes:"500" nullable:"false"`
	Description         api.Opt[string] `json:"description" maxLength:"200000" maxBytes:"200000"`
	Status              *string         `json:"status,omitempty" enum:"active,paused,archived" nullable:"false"`
	BudgetMonthlyCents  *int64          `json:"budgetMonthlyCents,omitempty" minimum:"0" maximum:"1000000000000" nullable:"false"`
	ResponsibleUser     api.Opt[string] `json:"defaultResponsibleUserId" minLength:"1" maxLength:"200"`
	RequireHireApproval *bool           `json:"requireBoardApprovalForNewAgents,omitempty" nullable:"false"`
	RequireStrategy     *bool           `json:"requireBoardApprovalForCeoStrategy,omitempty" nullable:"false"`
	BrandColor          api.Opt[string] `json:"brandColor" maxLength:"50" maxBytes:"50"`
	AttachmentMaxBytes  *int64          `json:"attachmentMaxBytes,omitempty" minimum:"1" maximum:"1073741824" nullable:"false"`
	LogoAssetID         api.Opt[string] `json:"logoAssetId" format:"uuid"`
	FeedbackSharing     *bool           `json:"feedbackDataSharingEnabled,omitempty" nullable:"false"`
	FeedbackTerms       api.Opt[string] `json:"feedbackDataSharingTermsVersion" maxLength:"100" maxBytes:"100"`
}

// brandCompany is the body that changes a company's branding.
type brandCompany struct {
	_           struct{}        `additionalProperties:"false"`
	Name        *string         `json:"name,omitempty" minLength:"1" maxLength:"500" maxBytes:"500" nullable:"false"`
	Description api.Opt[string] `json:"description" maxLength:"200000" maxBytes:"200000"`
	BrandColor  api.Opt[string] `json:"brandColor" maxLength:"50" maxBytes:"50"`
	LogoAssetID api.Opt[string] `json:"logoAssetId" format:"uuid"`
}

// Check requires at least one field.
func (b brandCompany) Check() []api.Issue {
	if b.Name == nil && !b.Description.Set && !b.BrandColor.Set && !b.LogoAssetID.Set {
		return []api.Issue{{Code: "custom", Message: "At least one branding field must be provided"}}
	}
	return nil
}

// A companyRow is a company as answers show it: its row, and figures from other rows.
type companyRow struct {
	entity.Company
	BudgetMonthly        core.Money    `json:"budgetMonthlyCents"`
	SpentMonthly         core.Money    `json:"spentMonthlyCents"`
	Held                 core.Money    `json:"heldCents"` // reserved for calls in progress
	ResolverGovernance   struct{}      `json:"interactionResolverGovernance"`
	FeedbackSharing      bool          `json:"feedbackDataSharingEnabled"`
	FeedbackConsentAt    core.Time     `json:"feedbackDataSharingConsentAt"`
	FeedbackConsentBy    core.NullText `json:"feedbackDataSharingConsentByUserId"`
	FeedbackTermsVersion core.NullText `json:"feedbackDataSharingTermsVersion"`
	LogoURL              core.NullText `json:"logoUrl"`
	RequireStrategy      bool          `json:"requireBoardApprovalForCeoStrategy"`
}

func showCompany(tx *ledger.Tx, row entity.Company, now time.Time) companyRow {
	limit, spent := money.CompanyBudget(tx, row.ID, core.TimeOf(now))
	out := companyRow{Company: row, BudgetMonthly: limit, SpentMonthly: spent, Held: money.MoneyHeld(tx, row.ID,
		entity.ScopeCompany, string(row.ID)), RequireStrategy: !row.NoStrategyGate,
		FeedbackSharing: row.Feedback.Sharing, FeedbackConsentAt: row.Feedback.At, FeedbackConsentBy: row.Feedback.By,
		FeedbackTermsVersion: row.Feedback.Terms}
	if row.LogoAsset != "" {
		out.LogoURL = "/api/assets/" + row.LogoAsset + "/content"
	}
	return out
}

func CompanyRoutes() []api.Route {
	const tag, one = "companies", "/api/companies/{companyId}"
	change := func(verb, summary string) api.Route {
		return api.Route{Method: "POST", Path: one + "/" + verb, Tag: tag, Summary: summary, Who: api.Board,
			Out: companyRow{},
			Handle: func(rc *api.Request) (api.Response, error) {
				return saveCompany(rc, api.CompanyID(rc), "company."+verb, company.ChangeCompany{})
			}}
	}
	return []api.Route{
		api.Read(api.Route{Path: "/api/companies", NobodyAsAgent: true, Tag: tag, Summary: "List companies"},
			listCompanies),
		{Method: "POST", Path: "/api/companies", NobodyAsAgent: true, Tag: tag, Summary: "Create a company", Who: api.Board,
			In: newCompany{}, Out: companyRow{}, Status: 201, Handle: createCompany},
		{Method: "GET", Path: "/api/companies/stats", Tag: tag, Summary: "Count agents and issues by company", Who: api.Board,
			Out: map[string]rules.Stat{}, Handle: companyStats},
		api.Read(api.Route{Path: one, Tag: tag, Summary: "Read a company"}, readCompany),
		{Method: "PATCH", Path: one, Tag: tag, Summary: "Change a company", Who: api.Board, In: patchCompany{},
			Out: companyRow{}, Handle: updateCompany},
		{Method: "PATCH", Path: one + "/branding", Tag: tag, Summary: "Change how a company looks", Who: api.Board,
			In: brandCompany{}, Out: companyRow{}, Handle: rebrandCompany},
		change("archive", "Put a company away"), change("pause", "Pause a company"), change("resume", "Let a company go on"),
		{Method: "DELETE", Path: one, Tag: tag, Summary: "Delete a company", Who: api.Board, Out: api.Okay{},
			Handle: deleteCompany},
	}
}

func listCompanies(tx *ledger.Tx, rc *api.Request) ([]companyRow, error) {
	out := []companyRow{}
	for _, row := range entity.Companies(tx) {
		if rc.Enters(tx, row.ID) {
			out = append(out, showCompany(tx, row, rc.Now()))
		}
	}
	return out, nil
}

func companyStats(rc *api.Request) (api.Response, error) {
	var out map[ledger.CompanyID]rules.Stat
	err := rc.View(func(tx *ledger.Tx) error {
		out = rules.Stats(tx)
		for id := range out {
			if !rc.Enters(tx, id) {
				delete(out, id)
			}
		}
		return nil
	})
	return api.OK(out), err
}

func readCompany(tx *ledger.Tx, rc *api.Request) (companyRow, error) {
	row, err := api.CompanyIn(tx, rc)
	if err != nil {
		return companyRow{}, err
	}
	return showCompany(tx, row, rc.Now()), nil
}

// saveCompany submits a command that returns the company's row, and answers it.
func saveCompany(rc *api.Request, id ledger.CompanyID, kind string, payload any) (api.Response, error) {
	if !api.IsUUID(id) {
		return api.Response{}, api.NotFound("Company not found")
	}
	row, err := api.Do[entity.Company](rc, kind, id, payload)
	if err != nil {
		return api.Response{}, err
	}
	var r api.Response
	err = rc.View(func(tx *ledger.Tx) error { r = api.OK(showCompany(tx, row, rc.Now())); return nil })
	return r, err
}

func createCompany(rc *api.Request) (api.Response, error) {
	in, err := api.Body[newCompany](rc)
	if err != nil {
		return api.Response{}, err
	}
	p := entity.SaveCompany{ID: ledger.CompanyID(rc.Ids()()), Name: &in.Name, Description: api.TextOf(in.Description),
		BrandColor: api.TextOf(in.BrandColor), ResponsibleUser: api.TextOf(in.ResponsibleUser)}
	if in.BudgetMonthlyCents > 0 {
		p.Budget = new(core.Cents(in.BudgetMonthlyCents))
	}
	return saveCompany(rc, p.ID, company.KindCompanyCreate, p)
}

func updateCompany(rc *api.Request) (api.Response, error) {
	in, err := api.Body[patchCompany](rc)
	if err != nil {
		return api.Response{}, err
	}
	p := entity.SaveCompany{Name: in.Name, Description: api.TextOf(in.Description),
		RequireHireApproval: in.RequireHireApproval, RequireStrategy: in.RequireStrategy,
		BrandColor: api.TextOf(in.BrandColor),
		LogoAsset:  api.IdPointer(in.LogoAssetID), AttachmentMaxBytes: in.AttachmentMaxBytes,
		ResponsibleUser: api.TextOf(in.ResponsibleUser), Budget: api.CentsOf(in.BudgetMonthlyCents),
		FeedbackSharing: in.FeedbackSharing, FeedbackTerms: api.TextOf(in.FeedbackTerms)}
	r, err := saveCompany(rc, api.CompanyID(rc), company.KindCompanyUpdate, p)
	if err != nil || in.Status == nil {
		return r, err
	}
	kind := map[string]string{"active": company.KindCompanyResume, "paused": company.KindCompanyPause,
		"archived": company.KindCompanyArchive}[*in.Status]
	return saveCompany(rc, api.CompanyID(rc), kind, company.ChangeCompany{})
}

func rebrandCompany(rc *api.Request) (api.Response, error) {
	in, err := api.Body[brandCompany](rc)
	if err != nil {
		return api.Response{}, err
	}
	return saveCompany(rc, api.CompanyID(rc), company.KindCompanyBranding, entity.SaveCompany{Name: in.Name,
		Description: api.TextOf(in.Description),
		BrandColor:  api.TextOf(in.BrandColor), LogoAsset: api.IdPointer(in.LogoAssetID)})
}

const (
	// deleteTime bounds how long a deletion waits. The rows that are left are deleted by the
	// next deletion; nobody sees them in the meantime.
	deleteTime = 8 * time.Second
)

func deleteCompany(rc *api.Request) (api.Response, error) {
	id := api.CompanyID(rc)
	if !api.IsUUID(id) {
		return api.Response{}, api.NotFound("Company not found")
	}
	for began := time.Now(); time.Since(began) < deleteTime; {
		d, err := api.Do[company.Deletion](rc, company.KindCompanyDelete, id, company.ChangeCompany{})
		if err != nil {
			return api.Response{}, err
		}
		if d.Done {
			break
		}
	}
	return api.OK(api.Okay{OK: true}), nil
}
