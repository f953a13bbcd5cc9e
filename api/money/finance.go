package money

import (
	"encoding/json"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/conceal"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/ledger"
)

// bookFinance is the body of a booking that is no cost event.
type bookFinance struct {
	AgentID     api.Opt[string]          `json:"agentId" format:"uuid"`
	IssueID     api.Opt[string]          `json:"issueId" format:"uuid"`
	ProjectID   api.Opt[string]          `json:"projectId" format:"uuid"`
	GoalID      api.Opt[string]          `json:"goalId" format:"uuid"`
	RunID       api.Opt[string]          `json:"heartbeatRunId" format:"uuid"`
	CostID      api.Opt[string]          `json:"costEventId" format:"uuid"`
	BillingCode api.Opt[string]          `json:"billingCode" maxLength:"200"`
	Description api.Opt[string]          `json:"description" maxLength:"500"`
	Kind        string                   `json:"eventKind" enum:"inference_charge,platform_fee,credit_purchase,credit_refund,credit_expiry,byok_fee,gateway_overhead,log_storage_charge,logpush_charge,provisioned_capacity_charge,training_charge,custom_model_import_charge,custom_model_storage_charge,manual_adjustment"`
	Direction   string                   `json:"direction,omitempty" enum:"debit,credit"`
	Biller      string                   `json:"biller" minLength:"1" maxLength:"100"`
	Provider    api.Opt[string]          `json:"provider" minLength:"1" maxLength:"100"`
	Adapter     api.Opt[string]          `json:"executionAdapterType" enum:"process,http,claude_local,codex_local,paperclip_runner,cursor_cloud,gemini_local,grok_local,hermes_gateway,hermes_local,kimi_local,opencode_local,pi_local,cursor,openclaw_gateway,acp,wasm,container,a2a"`
	Tier        api.Opt[string]          `json:"pricingTier" minLength:"1" maxLength:"100"`
	Region      api.Opt[string]          `json:"region" minLength:"1" maxLength:"100"`
	Model       api.Opt[string]          `json:"model" minLength:"1" maxLength:"200"`
	Quantity    api.Opt[int64]           `json:"quantity" minimum:"0" maximum:"1000000000000"`
	Unit        api.Opt[string]          `json:"unit" enum:"input_token,output_token,cached_input_token,request,credit_usd,credit_unit,model_unit_minute,model_unit_hour,gb_month,train_token,unknown"`
	AmountCents int64                    `json:"amountCents" minimum:"0" maximum:"1000000000"`
	Currency    string                   `json:"currency,omitempty" minLength:"3" maxLength:"3"`
	Estimated   bool                     `json:"estimated,omitempty"`
	Invoice     api.Opt[string]          `json:"externalInvoiceId" maxLength:"200"`
	Metadata    api.Opt[json.RawMessage] `json:"metadataJson" maxBytes:"65536"`
	OccurredAt  string                   `json:"occurredAt" format:"date-time"`
}

// A financeRow is a booking as it is shown.
type financeRow struct {
	money.FinanceEvent
	Metadata json.RawMessage `json:"metadataJson"`
}

type financeTotals struct {
	DebitCents          core.Money `json:"debitCents"`
	CreditCents         core.Money `json:"creditCents"`
	NetCents            core.Money `json:"netCents"`
	EstimatedDebitCents core.Money `json:"estimatedDebitCents"`
	EventCount          int64      `json:"eventCount"`
}

type FinanceSummary struct {
	CompanyID ledger.CompanyID `json:"companyId"`
	financeTotals
}

type financeByBiller struct {
	Biller string `json:"biller"`
	financeTotals
	KindCount int `json:"kindCount"`
}

type financeByKind struct {
	Kind string `json:"eventKind"`
	financeTotals
	BillerCount int `json:"billerCount"`
}

func financeTotalsOf(s money.FinanceSum) financeTotals {
	return financeTotals{s.Debit, s.Credit, s.Net(), s.Estimated, s.Events}
}

func FinanceRoutes() []api.Route {
	span := []api.Param{{Name: "from", Doc: "ISO date"}, {Name: "to", Doc: "ISO date"}}
	report := func(name, summary string, out any, f func(tx *ledger.Tx, rc *api.Request, of ledger.CompanyID,
		s money.Span) any) api.Route {
		return api.Route{Method: "GET", Path: "/api/companies/{companyId}/costs/" + name, Tag: "costs", Summary: summary,
			Query: span, Out: out,
			Handle: func(rc *api.Request) (api.Response, error) { return costReport(rc, f) }}
	}
	events := report("finance-events", "List bookings that are no cost events, newest first", []financeRow{}, nil)
	events.Query = append(append([]api.Param{}, span...), api.Param{Name: "limit", Type: "integer"})
	events.Handle = listFinance
	return []api.Route{
		{Method: "POST", Path: "/api/companies/{companyId}/finance-events", Tag: "costs",
			Summary: "Book a fee, a credit or a correction", Who: api.Board, In: bookFinance{},
			Out: financeRow{}, Status: 201, Handle: newFinance},
		events,
		report("finance-summary", "Sum up bookings that are no cost events", FinanceSummary{},
			func(tx *ledger.Tx, _ *api.Request, of ledger.CompanyID, s money.Span) any {
				out := FinanceSummary{CompanyID: of}
				for _, line := range money.Finances(tx, of, s, money.AllFinances) {
					out.financeTotals = financeTotalsOf(line)
				}
				return out
			}),
		report("finance-by-biller", "Sum up bookings by biller", []financeByBiller{}, func(tx *ledger.Tx, _ *api.Request,
			of ledger.CompanyID, s money.Span) any {
			out := []financeByBiller{}
			for _, line := range money.Finances(tx, of, s, money.ByFinanceBiller) {
				out = append(out, financeByBiller{line.Biller, financeTotalsOf(line), line.Others})
			}
			return out
		}),
		report("finance-by-kind", "Sum up bookings by kind", []financeByKind{}, func(tx *ledger.Tx, _ *api.Request,
			of ledger.CompanyID, s money.Span) any {
			out := []financeByKind{}
			for _, line := range money.Finances(tx, of, s, money.ByFinanceKind) {
				out = append(out, financeByKind{line.Kind, financeTotalsOf(line), line.Others})
			}
			return out
		}),
	}
}

func listFinance(rc *api.Request) (api.Response, error) {
	limit, err := rc.QueryInt("limit", 100, 1, money.MaxFinanceList)
	if err != nil {
		return api.Response{}, err
	}
	return costReport(rc, func(tx *ledger.Tx, _ *api.Request, of ledger.CompanyID, s money.Span) any {
		out := []financeRow{}
		for _, e := range money.FinanceEvents(tx, of, s, limit) {
			out = append(out, financeRow{e, api.RawJSON(e.Metadata)})
		}
		return out
	})
}

func newFinance(rc *api.Request) (api.Response, error) {
	in, err := api.Body[bookFinance](rc)
	if err != nil {
		return api.Response{}, err
	}
	at, err := parseInstant(in.OccurredAt)
	if err != nil {
		return api.Response{}, err
	}
	text := func(o api.Opt[string]) core.NullText { return core.NullText(o.Or("")) }
	id := func(o api.Opt[string]) core.NullText { return core.NullText(api.BodyID(o)) }
	e := money.FinanceEvent{ID: api.NewID(), Agent: id(in.AgentID), Issue: id(in.IssueID), Project: id(in.ProjectID),
		Goal: id(in.GoalID), Run: id(in.RunID), Cost: id(in.CostID),
		BillingCode: text(in.BillingCode), Description: text(in.Description), Kind: in.Kind, Direction: in.Direction,
		Biller: in.Biller, Provider: text(in.Provider),
		Adapter: text(in.Adapter), Tier: text(in.Tier), Region: text(in.Region), Model: text(in.Model), Unit: text(in.Unit),
		Amount:   core.Cents(in.AmountCents),
		Currency: in.Currency, Estimated: in.Estimated, Invoice: text(in.Invoice), OccurredAt: at}
	if in.Quantity.Set {
		if n := in.Quantity.Or(-1); n >= 0 {
			e.Quantity = &n
		}
	}
	if raw := in.Metadata.Or(nil); len(raw) > 0 && string(raw) != "null" {
		if len(raw) > entity.MaxConfig || raw[0] != '{' {
			return api.Response{}, api.ValidationError(api.Issue{Code: "invalid_type", Expected: "record",
				Path: []any{"metadataJson"}, Message: "Invalid input: expected record"})
		}
		e.Metadata = conceal.RedactConfig(raw) // what was pasted by mistake goes no further
	}
	e, err = api.Do[money.FinanceEvent](rc, money.KindFinanceBook, api.CompanyID(rc), e)
	return api.OK(financeRow{e, api.RawJSON(e.Metadata)}), err
}
