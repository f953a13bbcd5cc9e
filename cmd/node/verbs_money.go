package main

var costVerbs = []verb{
	costVerb("by-agent", "agent", "AGENT=agentName COST=costCents INPUT=inputTokens OUTPUT=outputTokens"),
	{use: "summary", short: "Show what a company spent this month, or in a time", path: "/api/companies/{company}/costs/summary", says: "{spendCents} of {budgetCents}", fields: between},
	costVerb("by-project", "project", "PROJECT=projectName COST=costCents INPUT=inputTokens OUTPUT=outputTokens"), costVerb("by-model", "agent and model", "AGENT=agentName MODEL=model COST=costCents INPUT=inputTokens OUTPUT=outputTokens"),
	costVerb("by-provider", "provider", "PROVIDER=provider MODEL=model COST=costCents INPUT=inputTokens OUTPUT=outputTokens"), costVerb("by-biller", "who sends the bill", "BILLER=biller COST=costCents INPUT=inputTokens OUTPUT=outputTokens"),
	costVerb("by-code", "billing code", "CODE=billingCode COST=costCents INPUT=inputTokens OUTPUT=outputTokens"),
	{use: "book BILLER KIND CENTS WHEN", short: "Book a fee, a credit or a correction, with the ISO time it belongs to", method: "POST", path: "/api/companies/{company}/finance-events", says: "{id} {eventKind} {amountCents}",
		fields: []field{{place: 1, member: "biller"}, {place: 2, member: "eventKind"}, {place: 3, member: "amountCents", kind: "int"}, {place: 4, member: "occurredAt"}, {name: "direction", member: "direction", about: "debit or credit", value: "debit"},
			{name: "description", member: "description", about: "what for"}}},
	{use: "bookings", short: "List bookings, newest first", path: "/api/companies/{company}/costs/finance-events", columns: "AT=occurredAt BILLER=biller KIND=eventKind DIRECTION=direction COST=amountCents", fields: append([]field{withLimit}, between...)},
	{use: "booked", short: "Show what the bookings add up to", path: "/api/companies/{company}/costs/finance-summary", fields: between},
	{use: "booked-by-biller", short: "Show what the bookings add up to by who sends the bill", path: "/api/companies/{company}/costs/finance-by-biller", columns: "BILLER=biller BOOKINGS=eventCount DEBIT=debitCents CREDIT=creditCents NET=netCents", fields: between},
	{use: "booked-by-kind", short: "Show what the bookings add up to by kind", path: "/api/companies/{company}/costs/finance-by-kind", columns: "KIND=eventKind BOOKINGS=eventCount DEBIT=debitCents CREDIT=creditCents NET=netCents", fields: between},
	{use: "windows", short: "Show the costs of the last hours, day and week", path: "/api/companies/{company}/costs/window-spend", columns: "WINDOW=window PROVIDER=provider BILLER=biller COST=costCents INPUT=inputTokens OUTPUT=outputTokens"},
	{use: "quota", short: "Show how much of the providers' subscriptions is used", path: "/api/companies/{company}/costs/quota-windows", columns: "PROVIDER=provider KNOWN=ok WHY=error"},
}

func costVerb(use, by, columns string) verb {
	path := use
	switch use {
	case "by-model":
		path = "by-agent-model"
	case "by-code":
		path = "by-billing-code"
	}
	return verb{use: use, short: "Show costs by " + by, path: "/api/companies/{company}/costs/" + path, columns: columns,
		fields: between}
}
