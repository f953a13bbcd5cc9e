package work

import (
	"encoding/json"
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/paper"
	"github.com/selvage-mesh/selvage/ledger"
)

// saveDocument is the body that writes a document.
type saveDocument struct {
	Title   api.Opt[string] `json:"title" maxLength:"200"`
	Format  string          `json:"format" enum:"markdown"`
	Body    string          `json:"body"`
	Summary api.Opt[string] `json:"changeSummary" maxLength:"500"`
	Base    api.Opt[string] `json:"baseRevisionId" format:"uuid"`
}

// A shownDocument is a document with its text. LatestBody is the text before a change;
// only the answer to that change has it.
type shownDocument struct {
	paper.Document
	Body       string  `json:"body"`
	LatestBody *string `json:"latestBody,omitempty"`
}

func DocumentRoutes() []api.Route {
	const base = "/api/issues/{id}/documents"
	rows := []api.Route{
		api.Show(api.Route{Path: base, Tag: "issues", Summary: "List the documents of an issue"}, api.FindIssue,
			shownDocuments),
		api.Show(api.Route{Path: base + "/{key}", Tag: "issues", Summary: "Read a document"}, documentIn, showDocument),
		{Method: "PUT", Path: base + "/{key}", Tag: "issues", Summary: "Write a document", In: saveDocument{},
			Out: shownDocument{}, Also: []int{201}, MaxBody: api.MaxDocumentBody, Handle: putDocument},
		api.Tell(api.Route{Path: base + "/{key}", Tag: "issues", Summary: "Delete a document", Who: api.Board},
			paper.KindDocumentDelete, api.LocateIssue, func(rc *api.Request, issue string) paper.ChangeDocument {
				return paper.ChangeDocument{Issue: issue, Key: documentKey(rc)}
			}),
		api.Show(api.Route{Path: base + "/{key}/revisions", Tag: "issues", Summary: "List the revisions of a document"},
			documentIn, paper.RevisionsOfDocument),
		{Method: "POST", Path: base + "/{key}/revisions/{revisionId}/restore", Tag: "issues",
			Summary: "Make an old revision of a document the latest", Out: shownDocument{}, Handle: restoreDocument},
	}
	for verb, kind := range map[string]string{"lock": paper.KindDocumentLock, "unlock": paper.KindDocumentUnlock} {
		summary := map[string]string{"lock": "Keep a document as it is", "unlock": "Let a document be changed again"}[verb]
		rows = append(rows, api.Route{Method: "POST", Path: base + "/{key}/" + verb, Tag: "issues", Summary: summary,
			Out: shownDocument{},
			Handle: func(rc *api.Request) (api.Response, error) {
				of, issue, err := api.LocateIssue(rc)
				if err != nil {
					return api.Response{}, err
				}
				if _, err = api.Do[paper.Document](rc, kind, of, paper.ChangeDocument{Issue: issue,
					Key: documentKey(rc)}); err != nil {
					return api.Response{}, err
				}
				return api.Showing(rc, documentIn, showDocument)
			}})
	}
	return rows
}

// documentKey returns the key that the path names, in lower case as keys are stored.
func documentKey(rc *api.Request) string { return strings.ToLower(rc.Path("key")) }

func documentIn(tx *ledger.Tx, rc *api.Request) (paper.Document, error) {
	i, err := api.FindIssue(tx, rc)
	if err != nil {
		return paper.Document{}, err
	}
	d, ok := paper.DocumentOf(tx, i, documentKey(rc))
	if !ok {
		return d, api.NotFound("Document not found")
	}
	return d, nil
}

func showDocument(tx *ledger.Tx, d paper.Document) shownDocument {
	return shownDocument{Document: d, Body: d.Text(tx)}
}

func shownDocuments(tx *ledger.Tx, i entity.Issue) []shownDocument {
	out := []shownDocument{}
	for _, d := range paper.DocumentsOf(tx, i) {
		out = append(out, showDocument(tx, d))
	}
	return out
}

func putDocument(rc *api.Request) (api.Response, error) {
	in, err := api.Body[saveDocument](rc)
	if err != nil {
		return api.Response{}, err
	}
	if len(in.Body) > paper.MaxDocument {
		return api.Response{}, ledger.Refuse(ledger.TooLarge, nil, "A document has at most %d bytes", paper.MaxDocument)
	}
	of, issue, err := api.LocateIssue(rc)
	if err != nil {
		return api.Response{}, err
	}
	p := paper.SaveDocument{Issue: issue, Key: documentKey(rc), ID: api.NewID(), Revision: api.NewID(),
		Title: api.TextOf(in.Title), Format: in.Format,
		Summary: in.Summary.Or(""), Base: strings.ToLower(in.Base.Or(""))}
	if p.Body, p.Parts, p.Sum, err = stageText(rc, of, in.Body); err != nil {
		return api.Response{}, err
	}
	saved, err := api.Do[paper.SavedDocument](rc, paper.KindDocumentSave, of, p)
	if err != nil {
		return api.Response{}, err
	}
	out := shownDocument{Document: saved.Document, Body: in.Body}
	if saved.Created {
		return api.Reply(201, out), nil
	}
	err = beforeIt(rc, saved, &out)
	return api.OK(out), err
}

// beforeIt adds the text of the document before a change.
func beforeIt(rc *api.Request, saved paper.SavedDocument, out *shownDocument) error {
	was := ""
	out.LatestBody = &was
	return rc.View(func(tx *ledger.Tx) error {
		if r, ok := paper.RevisionOfDocument(tx, saved.Document, saved.Was); ok {
			was = r.Body
		}
		return nil
	})
}

// stageText returns a text in the form a command takes: the text itself when it is
// short, else the names of its staged parts and their checksum.
func stageText(rc *api.Request, of ledger.CompanyID, text string) (body string, parts []string, sum string, err error) {
	if len(text) <= paper.InlineDocument {
		return text, nil, "", nil
	}
	parts, err = api.StageParts(rc, of, []byte(text))
	return "", parts, company.PartName([]byte(text)), err
}

func restoreDocument(rc *api.Request) (api.Response, error) {
	of, issue, err := api.LocateIssue(rc)
	if err != nil {
		return api.Response{}, err
	}
	saved, err := api.Do[paper.SavedDocument](rc, paper.KindDocumentRestore, of, paper.RestoreDocument{Issue: issue,
		Key:      documentKey(rc),
		Revision: strings.ToLower(rc.Path("revisionId")), ID: api.NewID()})
	if err != nil {
		return api.Response{}, err
	}
	out := shownDocument{Document: saved.Document}
	err = rc.View(func(tx *ledger.Tx) error {
		out.Body = saved.Document.Text(tx)
		return nil
	})
	return api.OK(out), err
}

// documentsMember writes an issue's documents: the plan with its text, the list of all
// documents without texts.
func documentsMember(tx *ledger.Tx, i entity.Issue, has company.Extras) member {
	return func(b core.Object) core.Object {
		if has&company.HasDocuments == 0 {
			return b.Fixed(`"planDocument":null,"documentSummaries":[],"legacyPlanDocument":null`)
		}
		list := paper.DocumentsOf(tx, i)
		b = b.Fixed(`"planDocument":`)
		if d, ok := paper.DocumentOf(tx, i, "plan"); ok {
			plan, _ := json.Marshal(shownDocument{Document: d, Body: d.Text(tx)})
			b = append(b, plan...)
		} else {
			b = append(b, "null"...)
		}
		return b.Value("documentSummaries", list).Raw("legacyPlanDocument", nil)
	}
}
