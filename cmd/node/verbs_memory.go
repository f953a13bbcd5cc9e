package main

import "github.com/selvage-mesh/selvage/cmd/node/cli"

// recallVerbs are about what a company remembers.
var recallVerbs = []cli.Verb{
	{Use: "add TEXT", Short: "Remember a text", Example: "  selvage memory add 'Globex pays late' --kind fact --tag customer --project Site", Method: "POST", Path: "/api/v1/memory?companyId={company}", Says: done,
		Fields: []cli.Field{{Place: 1, Member: "text"}, {Name: "kind", Member: "kind", About: "a word, such as note, fact or lesson"}, {Name: "tag", Member: "tags", Kind: "list", About: "repeat for more"},
			{Name: "agent", Member: "agentId", Kind: "agent", About: "whose it is; without one it is the company's"}, {Name: "private", Member: "private", Kind: "bool", About: "only that agent, and the board, read it"},
			{Name: "project", Member: "projectId", Kind: "project", About: "what it is about"}, {Name: "issue", Member: "issueId", Kind: "issue", About: "where it came from"},
			{Name: "importance", Member: "importance", Kind: "int", About: "0 to 1000"}, {Name: "until", Member: "expiresAt", About: "when it is forgotten by itself, an ISO date with time"}}},
	{Use: "search WORDS", Short: "Find memories, the best first, and why", Example: "  selvage memory search 'when does Globex pay'\n  selvage memory search '\"pays late\" invoi*' --by words --tag customer",
		Method: "POST", Path: "/api/v1/memory/search?companyId={company}", Rows: "results", Columns: "ID=memory.id SCORE=score WORDS=why.wordRank NEAR=why.cosine KIND=memory.kind TEXT=memory.text",
		Fields: []cli.Field{{Place: 1, Member: "query"}, withLimit, {Name: "by", Member: "by", About: "both, words or vectors"}, {Name: "kind", Member: "kinds", Kind: "list", About: "only of these kinds"},
			{Name: "tag", Member: "tags", Kind: "list", About: "only with all of these tags"}, {Name: "after", Member: "after", About: "only made then or later, an ISO date with time"}, {Name: "before", Member: "before", About: "only made earlier"},
			{Name: "half-life", Member: "halfLifeHours", Kind: "int", About: "after so many hours a memory counts half"}, {Name: "importance", Member: "importanceWeight", Kind: "int", About: "how much importance counts, 0 to 1000"}}},
	{Use: "show ID", Short: "Show a memory and where it came from", Path: "/api/v1/memory/{1}"},
	{Use: "update ID", Short: "Change a memory", Method: "PATCH", Path: "/api/v1/memory/{1}", Says: done,
		Fields: []cli.Field{{Name: "text", Member: "text", About: "its new text"}, {Name: "kind", Member: "kind", About: "a word"}, {Name: "tag", Member: "tags", Kind: "list", About: "its tags, in the place of those that it had"},
			{Name: "importance", Member: "importance", Kind: "int", About: "0 to 1000"}, {Name: "until", Member: "expiresAt", About: "when it is forgotten by itself"}}},
	{Use: "forget ID", Short: "Forget a memory: its text leaves every node, the ledger keeps its hash", Method: "DELETE", Path: "/api/v1/memory/{1}", Says: "forgotten"},
	{Use: "embedding", Short: "Show which model embeds what a company remembers", Path: "/api/v1/memory/embedding?companyId={company}"},
	{Use: "embed [MODEL]", Short: "Choose the model that embeds what a company remembers; without one nodes embed by words alone", Example: "  selvage memory embed box/minilm --agent Ada\n  selvage memory embed box/minilm --version 2",
		Method: "PUT", Path: "/api/v1/memory/embedding?companyId={company}",
		Fields: []cli.Field{{Place: 1, Member: "model"}, {Name: "version", Member: "version", About: "of the model; another one embeds everything again"}, {Name: "agent", Member: "agentId", Kind: "agent", About: "whose budget pays; the agent that reports to nobody unless given"},
			{Name: "question-model", Member: "questionModel", About: "the model's name for questions, where it embeds them in another way than texts"}, {Name: "inherit", Member: "inherit", Kind: "bool", About: "take the choice of the mesh"}}},
	{Use: "mesh-embedding", Short: "Show which model embeds what companies without a choice of their own remember", Path: "/api/instance/memory-embedding"},
	{Use: "mesh-embed [MODEL]", Short: "Choose the model that embeds what companies without a choice of their own remember", Method: "PUT", Path: "/api/instance/memory-embedding",
		Fields: []cli.Field{{Place: 1, Member: "model"}, {Name: "version", Member: "version", About: "of the model; another one embeds everything again"},
			{Name: "question-model", Member: "questionModel", About: "the model's name for questions, where it embeds them in another way than texts"}}},
	{Use: "stats", Short: "Count memories, and show how far this node's index of them is", Path: "/api/v1/memory/stats?companyId={company}"},
}
