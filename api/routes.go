package api

import (
	"fmt"
	"net/http"
	"sync"

	"github.com/selvage-mesh/selvage/api/mcp"
)

// table collects the rows of all nouns.
func table() []Route {
	var all []Route
	for _, rows := range [][]Route{
		healthRoutes(),
		systemRoutes(),
		adapterRoutes(),
		meshRoutes(), admissionRoutes(), backupRoutes(), operatorRoutes(),
		eventRoutes(),
		runRoutes(),
		recoveryRoutes(),
		dismissalRoutes(),
		timelineRoutes(),
		pageRoutes(),
		voteRoutes(),
		feedbackRoutes(),
		treeHoldRoutes(),
		issueWatchRoutes(), diagnosticRoutes(),
		executionRoutes(),
		companyRoutes(),
		agentRoutes(),
		keyRoutes(),
		goalRoutes(),
		projectRoutes(),
		workspaceRoutes(), runtimeServiceRoutes(),
		environmentRoutes(),
		orgRoutes(),
		dashboardRoutes(),
		activityRoutes(), schedulerRoutes(),
		issueRoutes(), extractRoutes(),
		checkoutRoutes(),
		commentRoutes(),
		documentRoutes(),
		annotationRoutes(), decompositionRoutes(), runnerGoalRoutes(),
		interactionRoutes(),
		productRoutes(),
		labelRoutes(),
		costRoutes(),
		budgetRoutes(), reservationRoutes(), schedulingRoutes(),
		financeRoutes(),
		approvalRoutes(),
		hireRoutes(), agentApproveRoutes(),
		attentionRoutes(),
		exportRoutes(),
		importRoutes(), transferRoutes(),
		assetRoutes(),
		routineRoutes(),
		routineAnnotationRoutes(),
		folderRoutes(),
		textRoutes(),
		skillRoutes(),
		skillVersionRoutes(),
		skillSourceRoutes(), skillReviewRoutes(),
		secretRoutes(),
		userSecretRoutes(),
		settingsRoutes(),
		instructionRoutes(),
		boardKeyRoutes(),
		userRoutes(),
		accessRoutes(),
		memberRoutes(),
		inviteRoutes(), inviteHelpRoutes(),
		profileRoutes(), teamRoutes(), absentRoutes(),
		modelRoutes(),
		executeRoutes(), toolRoutes(), memoryRoutes(),
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
	s.routes, s.byPattern = table(), map[string]*Route{}
	for i := range s.routes {
		route := &s.routes[i]
		name := route.Method + " " + route.Path
		if s.byPattern[name] != nil {
			return fmt.Errorf("api: two routes for %s", name)
		}
		s.byPattern[name] = route
		s.mux.HandleFunc(name, func(w http.ResponseWriter, r *http.Request) { s.serve(route, w, r) })
	}
	// Most nodes are never asked for the description, which takes more memory than
	// all else that they need at rest.
	s.openapi = sync.OnceValues(func() ([]byte, error) { return describe(s.cfg.Version, s.routes) })
	tools := sync.OnceValues(func() (http.Handler, error) {
		doc, err := s.openapi()
		if err != nil {
			return nil, err
		}
		tools, err := toolsOf(doc)
		if err != nil {
			return nil, err
		}
		return mcp.Handler(tools, s.cfg.Version, s.log, s), nil
	})
	s.mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		h, err := tools()
		if err != nil {
			s.log.Error("the routes can not be described", "error", err)
			writeJSON(w, http.StatusInternalServerError, errorBody{Error: internalError})
			return
		}
		h.ServeHTTP(w, r)
	})
	s.mux.HandleFunc("/llm/", s.serveModelCall)
	s.mux.HandleFunc("/api/", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusNotFound, errorBody{Error: "API route not found"})
	})
	s.mux.HandleFunc("GET /metrics", s.serveMetrics)
	s.mux.HandleFunc("/cli-auth/{id}", s.serveApproval)
	if s.cfg.Board != nil {
		s.mux.Handle("/", s.cfg.Board)
	} else {
		s.mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
			writeJSON(w, http.StatusNotFound, errorBody{Error: "Not found"})
		})
	}
	return nil
}

// routeOf returns the row that a request is for, or nil.
func (s *Server) routeOf(r *http.Request) *Route {
	_, pattern := s.mux.Handler(r)
	return s.byPattern[pattern]
}

// toolsOf makes the MCP tools that a description gives.
func toolsOf(openapi []byte) ([]*mcp.Tool, error) {
	d, err := mcp.Describe(openapi)
	if err != nil {
		return nil, err
	}
	return mcp.Tools(d)
}

// Tools returns the MCP tools that a node of this version offers, for clients
// that run without one.
func Tools(version string) ([]*mcp.Tool, error) {
	doc, err := Describe(version)
	if err != nil {
		return nil, err
	}
	return toolsOf(doc)
}

// Describe returns the OpenAPI document (JSON) of a node of this version, likewise.
func Describe(version string) ([]byte, error) {
	return describe(version, table())
}

// describe makes the OpenAPI document of routes.
func describe(version string, routes []Route) ([]byte, error) {
	spec := newOpenAPI(version)
	for i := range routes {
		op, err := operation(spec, &routes[i])
		if err != nil {
			return nil, err
		}
		spec.AddOperation(op)
	}
	return render(spec)
}

// Routes returns the table, for tools that are made from it.
func (s *Server) Routes() []Route { return s.routes }
