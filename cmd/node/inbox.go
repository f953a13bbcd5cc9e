package main

import "github.com/selvage-mesh/selvage/cmd/node/cli"

// inboxVerbs are the rows of selvage inbox.
var inboxVerbs = []cli.Verb{
	{Use: "list", Short: "List the issues that you have, created or commented on",
		Path: "/api/companies/{company}/issues", Columns: issueTable,
		Fields: []cli.Field{{Name: "of", Member: "touchedByUserId", Value: "me", About: "whose; me is you"},
			{Name: "status", Member: "status", About: "only of these statuses, separated by commas"}, withLimit}},
	{Use: "unread", Short: "List the issues with comments that you have not read",
		Path: "/api/companies/{company}/issues", Columns: issueTable,
		Fields: []cli.Field{{Name: "of", Member: "unreadForUserId", Value: "me", About: "whose; me is you"},
			withLimit}},
	{Use: "desk", Short: "List what needs a decision of the board", Path: "/api/companies/{company}/attention",
		Rows: "items",
		Columns: "KIND=sourceKind SEVERITY=severity WHAT=subject.title WHY=whyNow ISSUE=relatedIssue.identifier " +
			"KEY=dismissalKey"},
	{Use: "dismissed", Short: "List what you dismissed from the inbox",
		Path:    "/api/companies/{company}/inbox-dismissals",
		Columns: "KEY=itemKey KIND=kind UNTIL=snoozedUntil AT=dismissedAt"},
	{Use: "dismiss KEY", Short: "Dismiss something from the inbox", Method: "POST",
		Path: "/api/companies/{company}/inbox-dismissals", Says: "{itemKey}",
		Fixed:  map[string]any{"kind": "dismiss"},
		Fields: []cli.Field{{Place: 1, Member: "itemKey", Kind: "dismissal"}}},
	{Use: "snooze KEY WHEN", Short: "Snooze something in the inbox until an ISO time", Method: "POST",
		Path: "/api/companies/{company}/inbox-dismissals", Says: "{itemKey} {snoozedUntil}",
		Fixed:  map[string]any{"kind": "snooze"},
		Fields: []cli.Field{{Place: 1, Member: "itemKey", Kind: "dismissal"}, {Place: 2, Member: "snoozedUntil"}}},
	{Use: "restore KEY", Short: "Restore something to the inbox", Method: "DELETE",
		Path: "/api/companies/{company}/inbox-dismissals/{dismissal:1}", Says: "restored"},
}
