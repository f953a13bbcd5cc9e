package main

import (
	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
)

// costVerbs are the rows of selvage cost.
var costVerbs = []cli.Verb{
	costVerb("by-agent", "agent", "AGENT=agentName COST=costCents INPUT=inputTokens OUTPUT=outputTokens"),
	{Use: "summary", Short: "Show what a company spent this month, or in a time",
		Path: "/api/companies/{company}/costs/summary", Says: "{spendCents} of {budgetCents}", Fields: between},
	costVerb("by-project", "project", "PROJECT=projectName COST=costCents INPUT=inputTokens OUTPUT=outputTokens"),
	costVerb("by-model", "agent and model",
		"AGENT=agentName MODEL=model COST=costCents INPUT=inputTokens OUTPUT=outputTokens"),
	costVerb("by-provider", "provider",
		"PROVIDER=provider MODEL=model COST=costCents INPUT=inputTokens OUTPUT=outputTokens"),
	costVerb("by-biller", "who sends the bill",
		"BILLER=biller COST=costCents INPUT=inputTokens OUTPUT=outputTokens"),
	costVerb("by-day", "day in UTC, agent, project and model; of this month unless a time is named",
		"DATE=date AGENT=agentName PROJECT=projectName MODEL=model COST=costCents INPUT=inputTokens OUTPUT=outputTokens"),
	costVerb("by-code", "billing code", "CODE=billingCode COST=costCents INPUT=inputTokens OUTPUT=outputTokens"),
	{Use: "book BILLER KIND CENTS WHEN",
		Short: "Book a fee, a credit or a correction, with the ISO time it belongs to", Method: "POST",
		Path: "/api/companies/{company}/finance-events", Says: "{id} {eventKind} {amountCents}",
		Fields: []cli.Field{{Place: 1, Member: "biller"}, {Place: 2, Member: "eventKind"},
			{Place: 3, Member: "amountCents", Kind: "int"}, {Place: 4, Member: "occurredAt"},
			{Name: "direction", Member: "direction", About: "debit or credit", Value: "debit"},
			{Name: "description", Member: "description", About: "what for"}}},
	{Use: "bookings", Short: "List bookings, newest first", Path: "/api/companies/{company}/costs/finance-events",
		Columns: "AT=occurredAt BILLER=biller KIND=eventKind DIRECTION=direction COST=amountCents",
		Fields:  append([]cli.Field{withLimit}, between...)},
	{Use: "booked", Short: "Show what the bookings add up to",
		Path: "/api/companies/{company}/costs/finance-summary", Fields: between},
	{Use: "booked-by-biller", Short: "Show what the bookings add up to by who sends the bill",
		Path:    "/api/companies/{company}/costs/finance-by-biller",
		Columns: "BILLER=biller BOOKINGS=eventCount DEBIT=debitCents CREDIT=creditCents NET=netCents",
		Fields:  between},
	{Use: "booked-by-kind", Short: "Show what the bookings add up to by kind",
		Path:    "/api/companies/{company}/costs/finance-by-kind",
		Columns: "KIND=eventKind BOOKINGS=eventCount DEBIT=debitCents CREDIT=creditCents NET=netCents",
		Fields:  between},
	{Use: "windows", Short: "Show the costs of the last hours, day and week",
		Path:    "/api/companies/{company}/costs/window-spend",
		Columns: "WINDOW=window PROVIDER=provider BILLER=biller COST=costCents INPUT=inputTokens OUTPUT=outputTokens"},
	{Use: "quota", Short: "Show how much of the providers' subscriptions is used",
		Path: "/api/companies/{company}/costs/quota-windows", Columns: "PROVIDER=provider KNOWN=ok WHY=error"},
}

func costVerb(use, by, columns string) cli.Verb {
	path := use
	switch use {
	case "by-model":
		path = "by-agent-model"
	case "by-code":
		path = "by-billing-code"
	}
	return cli.Verb{Use: use, Short: "Show costs by " + by, Path: "/api/companies/{company}/costs/" + path,
		Columns: columns,
		Fields:  between}
}

func costCommand() *cobra.Command {
	return cli.Group("cost", "Show what was spent, by agent, project or model")
}
