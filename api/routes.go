package api

import (
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// table collects the rows of all nouns.
func (s *Server) table() []Route {
	var all []Route
	for _, rows := range [][]Route{
		s.healthRoutes(), s.systemRoutes(), s.meshRoutes(), s.eventRoutes(),
		s.companyRoutes(), s.agentRoutes(), s.keyRoutes(), s.goalRoutes(), s.projectRoutes(), s.orgRoutes(), s.dashboardRoutes(), s.activityRoutes(),
		s.issueRoutes(), s.checkoutRoutes(), s.commentRoutes(), s.labelRoutes(), s.costRoutes(), s.budgetRoutes(),
		s.runRoutes(),
		s.approvalRoutes(), s.hireRoutes(),
	} {
		all = append(all, rows...)
	}
	return all
}

// mount registers the table, and what answers everything else.
func (s *Server) mount() (err error) {
	defer func() {
		if p := recover(); p != nil { // ServeMux panics on patterns that overlap
			err = fmt.Errorf("api: routes: %v", p)
		}
	}()
	s.mux = http.NewServeMux()
	s.routes = s.table()
	adapter := humago.NewAdapter(s.mux, "")
	spec := newOpenAPI(s.cfg.Version)
	seen := map[string]bool{}
	for i := range s.routes {
		route := &s.routes[i]
		name := route.Method + " " + route.Path
		if seen[name] {
			return fmt.Errorf("api: two routes for %s", name)
		}
		seen[name] = true
		op, err := operation(spec, route)
		if err != nil {
			return err
		}
		spec.AddOperation(op)
		adapter.Handle(op, func(ctx huma.Context) {
			r, w := humago.Unwrap(ctx)
			s.serve(route, w, r)
		})
	}
	if s.openapi, err = render(spec); err != nil {
		return err
	}
	s.mux.HandleFunc("/api/", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusNotFound, errorBody{Error: "API route not found"})
	})
	s.mux.Handle("GET /metrics", s.metrics.handler)
	if s.cfg.Board != nil {
		s.mux.Handle("/", s.cfg.Board)
	} else {
		s.mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
			writeJSON(w, http.StatusNotFound, errorBody{Error: "Not found"})
		})
	}
	return nil
}

// Routes returns the table, for tools that are made from it.
func (s *Server) Routes() []Route { return s.routes }
