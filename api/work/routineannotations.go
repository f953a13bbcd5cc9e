package work

import (
	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/paper"
	"github.com/selvage-mesh/selvage/company/routine"
	"github.com/selvage-mesh/selvage/ledger"
)

// A shownRoutineRemark is a thread on a routine's description.
type shownRoutineRemark struct {
	shownAnnotation
	Issue   *string `json:"issueId"` // always null: the thread belongs to no issue
	Routine string  `json:"routineId"`
}

func RoutineAnnotationRoutes() []api.Route {
	const tag, base = "routines", "/api/routines/{id}/description/annotations"
	return []api.Route{
		api.Read(api.Route{Path: base, Tag: tag, Summary: "List the remarks on a routine's description",
			Query: remarkParams}, listRoutineRemarks),
		{Method: "POST", Path: base, Tag: tag, Summary: "Remark on a part of a routine's description", In: annotationBody{},
			Out: shownRoutineRemark{}, Status: 201, Handle: newRoutineRemark},
		{Method: "GET", Path: base + "/{threadId}", Tag: tag, Summary: "Read a thread of remarks on a routine's description",
			Out:    shownRoutineRemark{},
			Handle: func(rc *api.Request) (api.Response, error) { return routineRemarkAt(rc, threadID(rc)) }},
		{Method: "PATCH", Path: base + "/{threadId}", Tag: tag,
			Summary: "Resolve a thread on a routine's description, or open it again", In: annotationPatch{},
			Out: shownRoutineRemark{}, Handle: patchRoutineRemark},
		{Method: "POST", Path: base + "/{threadId}/comments", Tag: tag,
			Summary: "Answer in a thread on a routine's description", In: remarkBody{}, Out: shownRoutineRemark{}, Status: 201,
			Handle: commentRoutineRemark},
	}
}

func showRoutineRemark(r routine.Routine, a paper.Annotation) shownRoutineRemark {
	return shownRoutineRemark{shownAnnotation: showAnnotation(a, paper.DescriptionOf(r.Described()),
		string(r.Description)), Routine: r.ID}
}

func listRoutineRemarks(tx *ledger.Tx, rc *api.Request) ([]shownRoutineRemark, error) {
	only, err := wantedRemarks(rc)
	if err != nil {
		return nil, err
	}
	r, err := api.RoutineIn(tx, rc)
	if err != nil {
		return nil, err
	}
	out := []shownRoutineRemark{}
	for _, a := range only(paper.AnnotationsOf(tx, paper.DescriptionOf(r.Described()))) {
		out = append(out, showRoutineRemark(r, a))
	}
	return out, nil
}

func routineRemarkAt(rc *api.Request, id string) (api.Response, error) {
	return api.Viewed(rc, func(tx *ledger.Tx) (out shownRoutineRemark, err error) {
		r, err := api.RoutineIn(tx, rc)
		if err != nil {
			return out, err
		}
		a, ok := paper.AnnotationOf(tx, paper.DescriptionOf(r.Described()), id)
		if !ok {
			return out, api.NotFound("Annotation thread not found")
		}
		return showRoutineRemark(r, a), nil
	})
}

func routineRemark(rc *api.Request, kind string, payload func(routine string) any) (api.Response, error) {
	r, _, err := api.FindRoutine(rc)
	if err != nil {
		return api.Response{}, err
	}
	a, err := api.Do[paper.Annotation](rc, kind, r.Company, payload(r.ID))
	if err != nil {
		return api.Response{}, err
	}
	return routineRemarkAt(rc, a.ID)
}

func newRoutineRemark(rc *api.Request) (api.Response, error) {
	in, err := api.Body[annotationBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	return routineRemark(rc, paper.KindRoutineAnnotationCreate, func(id string) any { return in.payload(id, "") })
}

func patchRoutineRemark(rc *api.Request) (api.Response, error) {
	in, err := api.Body[annotationPatch](rc)
	if err != nil {
		return api.Response{}, err
	}
	return routineRemark(rc, paper.KindRoutineAnnotationUpdate, func(routine string) any {
		return paper.ChangeAnnotation{Issue: routine, Thread: threadID(rc), Status: in.Status}
	})
}

func commentRoutineRemark(rc *api.Request) (api.Response, error) {
	in, err := api.Body[remarkBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	return routineRemark(rc, paper.KindRoutineAnnotationComment, func(routine string) any {
		return paper.ChangeAnnotation{Issue: routine, Thread: threadID(rc), Comment: paper.Remark{ID: api.NewID(),
			Body: in.Body, IssueComment: api.BodyID(in.Comment)}}
	})
}
