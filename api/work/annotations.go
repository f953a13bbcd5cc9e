package work

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/paper"
	"github.com/selvage-mesh/selvage/ledger"
)

// The bodies about remarks on documents.
type (
	annotationBody struct {
		_        struct{}           `additionalProperties:"false"`
		Base     string             `json:"baseRevisionId" format:"uuid"`
		Number   int64              `json:"baseRevisionNumber" minimum:"1"`
		Selector annotationSelector `json:"selector"`
		Body     string             `json:"body" minLength:"1" maxLength:"10000"`
		Comment  api.Opt[string]    `json:"issueCommentId" format:"uuid"`
	}
	annotationSelector struct {
		_     struct{} `additionalProperties:"false"`
		Quote struct {
			_      struct{} `additionalProperties:"false"`
			Exact  string   `json:"exact" minLength:"1" maxLength:"10000"`
			Prefix string   `json:"prefix,omitempty" maxLength:"1000"`
			Suffix string   `json:"suffix,omitempty" maxLength:"1000"`
		} `json:"quote"`
		Position struct {
			_             struct{} `additionalProperties:"false"`
			Start         int64    `json:"normalizedStart" minimum:"0"`
			End           int64    `json:"normalizedEnd" minimum:"0"`
			MarkdownStart int64    `json:"markdownStart" minimum:"0"`
			MarkdownEnd   int64    `json:"markdownEnd" minimum:"0"`
		} `json:"position"`
	}
	annotationPatch struct {
		_      struct{} `additionalProperties:"false"`
		Status string   `json:"status,omitempty" enum:"open,resolved"`
	}
	remarkBody struct {
		_       struct{}        `additionalProperties:"false"`
		Body    string          `json:"body" minLength:"1" maxLength:"10000"`
		Comment api.Opt[string] `json:"issueCommentId" format:"uuid"`
	}
)

// A shownAnnotation is a thread and its anchor state: active while the annotated text is
// in the document, else orphaned.
type shownAnnotation struct {
	paper.Annotation
	AnchorState string          `json:"anchorState"`
	Current     string          `json:"currentRevisionId"`
	CurrentNo   uint64          `json:"currentRevisionNumber"`
	Selector    json.RawMessage `json:"selector"`
}

func AnnotationRoutes() []api.Route {
	const tag, base = "issues", "/api/issues/{id}/documents/{key}/annotations"
	return []api.Route{
		api.Read(api.Route{Path: base, Tag: tag, Summary: "List the remarks on a document", Query: remarkParams},
			listAnnotations),
		{Method: "POST", Path: base, Tag: tag, Summary: "Remark on a part of a document", In: annotationBody{},
			Out: shownAnnotation{}, Status: 201, Handle: newAnnotation},
		{Method: "GET", Path: base + "/{threadId}", Tag: tag, Summary: "Read a thread of remarks", Out: shownAnnotation{},
			Handle: readAnnotation},
		{Method: "PATCH", Path: base + "/{threadId}", Tag: tag, Summary: "Resolve a thread of remarks, or open it again",
			In: annotationPatch{}, Out: shownAnnotation{}, Handle: patchAnnotation},
		{Method: "POST", Path: base + "/{threadId}/comments", Tag: tag, Summary: "Answer in a thread of remarks",
			In: remarkBody{}, Out: shownAnnotation{}, Status: 201, Handle: commentAnnotation},
	}
}

func showAnnotation(a paper.Annotation, d paper.Document, text string) shownAnnotation {
	out := shownAnnotation{Annotation: a, AnchorState: "active", Current: d.Latest, CurrentNo: d.Number,
		Selector: a.AnnotationSelector()}
	if !strings.Contains(text, a.Exact) {
		out.AnchorState = "orphaned"
	}
	return out
}

// remarkParams are the query parameters of the routes that list threads.
var remarkParams = []api.Param{
	{Name: "status", Doc: "open, resolved or all (default)"},
	{Name: "includeComments", Doc: "false: comments are empty lists (default true)"},
}

// wantedRemarks parses remarkParams. It returns a filter that keeps the threads they ask
// for.
func wantedRemarks(rc *api.Request) (only func([]paper.Annotation) []paper.Annotation, err error) {
	status, comments := rc.Query("status"), true
	switch status {
	case "", "all", "open", "resolved":
	default:
		return nil, api.Invalid("Invalid status: expected open, resolved or all")
	}
	if rc.Query("includeComments") != "" {
		if comments, err = rc.QueryBool("includeComments"); err != nil {
			return nil, err
		}
	}
	return func(list []paper.Annotation) []paper.Annotation {
		list = slices.DeleteFunc(list, func(a paper.Annotation) bool {
			return status != "" && status != "all" &&
				a.Status != status
		})
		for n := range list {
			if !comments {
				list[n].Comments = []paper.AnnotationComment{}
			}
		}
		return list
	}, nil
}

func listAnnotations(tx *ledger.Tx, rc *api.Request) ([]shownAnnotation, error) {
	only, err := wantedRemarks(rc)
	if err != nil {
		return nil, err
	}
	d, err := documentIn(tx, rc)
	if err != nil {
		return nil, err
	}
	list, text := only(paper.AnnotationsOf(tx, d)), d.Text(tx)
	out := make([]shownAnnotation, len(list))
	for n, a := range list {
		out[n] = showAnnotation(a, d, text)
	}
	return out, nil
}

// annotationAt answers one thread of the document that the path names.
func annotationAt(rc *api.Request, id string) (api.Response, error) {
	return api.Viewed(rc, func(tx *ledger.Tx) (out shownAnnotation, err error) {
		d, err := documentIn(tx, rc)
		if err != nil {
			return out, err
		}
		a, ok := paper.AnnotationOf(tx, d, id)
		if !ok {
			return out, api.NotFound("Annotation thread not found")
		}
		return showAnnotation(a, d, d.Text(tx)), nil
	})
}

func threadID(rc *api.Request) string { return strings.ToLower(rc.Path("threadId")) }

func readAnnotation(rc *api.Request) (api.Response, error) { return annotationAt(rc, threadID(rc)) }

// annotating submits a command about the document that the path names, and answers the
// thread.
func annotating(rc *api.Request, kind string, payload func(issue, key string) any) (api.Response, error) {
	of, issue, err := api.LocateIssue(rc)
	if err != nil {
		return api.Response{}, err
	}
	a, err := api.Do[paper.Annotation](rc, kind, of, payload(issue, documentKey(rc)))
	if err != nil {
		return api.Response{}, err
	}
	return annotationAt(rc, a.ID)
}

func newAnnotation(rc *api.Request) (api.Response, error) {
	in, err := api.Body[annotationBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	return annotating(rc, paper.KindAnnotationCreate, func(issue, key string) any { return in.payload(issue, key) })
}

// payload is a remark on a document of an issue, or with key "" on the description of a
// routine.
func (in annotationBody) payload(of, key string) paper.AnnotateDocument {
	q, p := in.Selector.Quote, in.Selector.Position
	return paper.AnnotateDocument{ID: api.NewID(), Issue: of, Key: key, Revision: strings.ToLower(in.Base),
		Number: uint64(in.Number), Exact: q.Exact, Before: q.Prefix,
		After: q.Suffix, Start: p.Start, End: p.End, MarkdownStart: p.MarkdownStart, MarkdownEnd: p.MarkdownEnd,
		Comment: paper.Remark{ID: api.NewID(), Body: in.Body, IssueComment: api.BodyID(in.Comment)}}
}

func patchAnnotation(rc *api.Request) (api.Response, error) {
	in, err := api.Body[annotationPatch](rc)
	if err != nil {
		return api.Response{}, err
	}
	return annotating(rc, paper.KindAnnotationUpdate, func(issue, key string) any {
		return paper.ChangeAnnotation{Issue: issue, Key: key, Thread: threadID(rc), Status: in.Status}
	})
}

func commentAnnotation(rc *api.Request) (api.Response, error) {
	in, err := api.Body[remarkBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	return annotating(rc, paper.KindAnnotationComment, func(issue, key string) any {
		return paper.ChangeAnnotation{Issue: issue, Key: key, Thread: threadID(rc), Comment: paper.Remark{ID: api.NewID(),
			Body: in.Body, IssueComment: api.BodyID(in.Comment)}}
	})
}
