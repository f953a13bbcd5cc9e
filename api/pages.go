package api

import (
	"strings"

	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/ledger"
)

// membershipBody is the body with which a user leaves, joins or stars something.
type membershipBody struct {
	State   string `json:"state,omitempty" enum:"joined,left"`
	Starred *bool  `json:"starred,omitempty" nullable:"false"`
}

func readMembership(rc *Request) (r Response, err error) {
	err = InCompany(rc, func(tx *ledger.Tx, row entity.Company) error {
		r = OK(people.ResourceMembershipOf(tx, row.ID, rc.Actor.ID))
		return nil
	})
	return r, err
}

func joinResource(kind, id string) func(*Request) (Response, error) {
	return func(rc *Request) (Response, error) {
		in, err := Body[membershipBody](rc)
		if err != nil {
			return Response{}, err
		}
		if in.State == "" && in.Starred == nil {
			return Response{}, ValidationError(Issue{Code: "custom", Message: "state or starred is needed"})
		}
		if _, err := rc.Submit(people.KindResourceJoin, CompanyID(rc), people.JoinResource{Kind: kind,
			ID: strings.ToLower(rc.Path(id)), State: in.State, Starred: in.Starred}); err != nil {
			return Response{}, err
		}
		return readMembership(rc)
	}
}

// A quotaWindow is how much of a subscription is used, or why that is unknown.
type quotaWindow struct {
	Provider string     `json:"provider"`
	OK       bool       `json:"ok"`
	Error    string     `json:"error"`
	Windows  []struct{} `json:"windows"`
}

// PageRoutes are routes of the contract's board for data that this system does not have: they
// answer that there is none.
func PageRoutes() []Route {
	of := "/api/companies/{companyId}"
	return []Route{
		{Method: "GET", Path: of + "/resource-memberships/me", Tag: "companies",
			Summary: "Tell what the user left or starred", Who: Board, Out: people.ResourceMembership{}, Handle: readMembership},
		{Method: "PUT", Path: of + "/resource-memberships/me/agents/{agentId}", Tag: "companies",
			Summary: "Join, leave or star an agent", Who: Board, In: membershipBody{}, Out: people.ResourceMembership{},
			Handle: joinResource("agent", "agentId")},
		{Method: "PUT", Path: of + "/resource-memberships/me/projects/{projectId}", Tag: "companies",
			Summary: "Join, leave or star a project", Who: Board, In: membershipBody{}, Out: people.ResourceMembership{},
			Handle: joinResource("project", "projectId")},
		{Method: "PUT", Path: of + "/resource-memberships/me/documents/{documentId}", Tag: "companies",
			Summary: "Star a document", Who: Board, In: membershipBody{}, Out: people.ResourceMembership{},
			Handle: joinResource("document", "documentId")},
		{Method: "GET", Path: of + "/costs/quota-windows", Tag: "costs",
			Summary: "Tell how much of the providers' subscriptions is used", Out: []quotaWindow{},
			Handle: OfCompany([]quotaWindow{
				{"anthropic", false, "The mesh meters calls itself and signs in to no subscription", []struct{}{}},
				{"openai", false, "The mesh meters calls itself and signs in to no subscription", []struct{}{}}})},
	}
}
