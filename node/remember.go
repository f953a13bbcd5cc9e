package node

import (
	"context"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	memories "github.com/selvage-mesh/selvage/company/memory"
	"github.com/selvage-mesh/selvage/ledger"
	index "github.com/selvage-mesh/selvage/memory"
)

const (
	// rememberWait bounds the search for what a run is told: it begins without it.
	rememberWait = 10 * time.Second
	// mostRemembered bounds the texts that a run is told of, askedOf the part of an issue
	// that is searched for, in bytes.
	mostRemembered = 20
	askedOf        = 1000
	// rememberedHalfLife is after how long a text counts half.
	rememberedHalfLife = 180 * 24 * time.Hour
)

// remembered returns what the company of a run remembers about its issue, as far as the
// agent reads it: quoted, and within the tokens that its agent is given.
func (n *Node) remembered(ctx context.Context, r entity.Run) string {
	ctx, cancel := context.WithTimeout(ctx, rememberWait)
	defer cancel()
	tokens, query := 0, ""
	err := n.ledger.View(func(tx *ledger.Tx) error {
		a, ok := entity.AgentTable.Get(tx, r.Company, r.Agent)
		i, there := entity.IssueOf(tx, r.Company, r.Context.Issue())
		if ok && there && memories.CountOf(tx, r.Company).Records > 0 {
			tokens, query = company.MemoryTokens(a), core.Snippet(i.Title+"\n"+i.Description, askedOf)
		}
		return nil
	})
	if err != nil || tokens == 0 || n.recall == nil {
		return ""
	}
	s := index.Search{Query: plainWords(query), Limit: mostRemembered, Now: n.consensus.Now().UnixMilli(),
		HalfLife: rememberedHalfLife.Milliseconds(), Importance: 500,
		Filter: index.Filter{Reader: r.Agent}}
	if s.Model, s.Vector, err = n.recall.Question(ctx, r.Company, r.Agent, query); err != nil {
		n.log.Info("the issue of a run was not embedded; what is remembered about it is found by words", "run", r.ID,
			"error", err)
	}
	var list []company.Remembered
	err = n.ledger.View(func(tx *ledger.Tx) error {
		found, _, err := n.recall.Search(tx, r.Company, s)
		if err != nil {
			return err
		}
		for _, hit := range found.Results {
			if m, ok := memories.Of(tx, r.Company, hit.ID.String()); ok && m.ReadableBy(r.Agent) &&
				!m.Expired(core.TimeOf(n.consensus.Now())) {
				list = append(list, rememberedOf(tx, m))
			}
		}
		return nil
	})
	if err != nil {
		n.log.Debug("nothing is remembered for a run", "run", r.ID, "error", err)
		return ""
	}
	return company.Quote(list, tokens)
}

// plainWords is a text as a question of words: a title is no phrase and no beginning of a word.
func plainWords(s string) string {
	out := []byte(s)
	for i, b := range out {
		if b == '"' || b == '*' {
			out[i] = ' '
		}
	}
	return string(out)
}

// rememberedOf says where a record comes from.
func rememberedOf(tx *ledger.Tx, m memories.Record) company.Remembered {
	out := company.Remembered{ID: m.ID, Kind: m.Kind, By: m.AuthorType + " " + m.Author, CreatedAt: m.CreatedAt,
		Text: m.Text}
	switch {
	case m.AuthorType == "agent":
		if a, ok := entity.AgentTable.Get(tx, m.Company, m.Author); ok {
			out.By = "agent " + a.Name
		}
	case m.Kind == memories.Outcome:
		out.By = "the closed issue"
	}
	if i, ok := entity.IssueOf(tx, m.Company, string(m.Issue)); ok {
		out.Issue = i.Identifier
	}
	return out
}
