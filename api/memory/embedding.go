package memory

import (
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/memory"
	"github.com/selvage-mesh/selvage/ledger"
	index "github.com/selvage-mesh/selvage/memory"
)

type (
	meshEmbeddingBody struct {
		Model    string `json:"model,omitempty" maxLength:"100" doc:"a model of the gateway, as agents name it; without one nodes embed by words alone"`
		Version  string `json:"version,omitempty" pattern:"^[a-z0-9._-]{1,20}$" doc:"of the model; another one embeds everything again; 1 unless given"`
		Question string `json:"questionModel,omitempty" maxLength:"100" doc:"the name of the model for questions, where it embeds them in another way than texts"`
	}
	embeddingBody struct {
		meshEmbeddingBody
		Agent   string `json:"agentId,omitempty" format:"uuid" doc:"whose budget pays; the agent that reports to nobody unless given"`
		Inherit bool   `json:"inherit,omitempty" doc:"take the company's own choice away: that of the mesh holds"`
	}
	embeddingShape struct {
		memory.Embedding
		Name string `json:"name"` // of its vectors
		Of   string `json:"of"`   // company, mesh or default: where the choice stands
	}
)

// embeddingOf is what holds for a company, or with "" for the mesh.
func embeddingOf(tx *ledger.Tx, of ledger.CompanyID) embeddingShape {
	out := embeddingShape{Of: "default", Name: index.Lexical}
	if of == "" {
		out.Embedding, _ = memory.EmbeddingOf(tx, "")
	} else {
		out.Embedding = memory.EmbeddingFor(tx, of)
	}
	if _, ok := memory.EmbeddingOf(tx, ""); ok {
		out.Of = "mesh"
	}
	if _, ok := memory.EmbeddingOf(tx, of); ok && of != "" {
		out.Of = "company"
	}
	if name := out.Embedding.Name(); name != "" {
		out.Name = name
	}
	return out
}

func readEmbedding(rc *api.Request) (api.Response, error) {
	of, err := ledger.CompanyID(""), error(nil)
	if !strings.HasPrefix(rc.HTTP.URL.Path, "/api/instance/") {
		if of, err = companyOf(rc, ""); err != nil {
			return api.Response{}, err
		}
	}
	return showEmbedding(rc, of)
}

func showEmbedding(rc *api.Request, of ledger.CompanyID) (api.Response, error) {
	return api.Viewed(rc, func(tx *ledger.Tx) (embeddingShape, error) { return embeddingOf(tx, of), nil })
}

func configure(rc *api.Request) (api.Response, error) {
	in, err := api.Body[embeddingBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	of, err := companyOf(rc, "")
	if err != nil {
		return api.Response{}, err
	}
	_, err = rc.Submit(memory.KindConfigure, of, memory.Configure{Model: in.Model, Version: in.Version,
		Question: in.Question, Agent: strings.ToLower(in.Agent), Inherit: in.Inherit})
	if err != nil {
		return api.Response{}, err
	}
	return showEmbedding(rc, of)
}

func configureMesh(rc *api.Request) (api.Response, error) {
	in, err := api.Body[meshEmbeddingBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	if _, err := rc.Submit(memory.KindConfigure, "", memory.Configure{Model: in.Model, Version: in.Version,
		Question: in.Question}); err != nil {
		return api.Response{}, err
	}
	return showEmbedding(rc, "")
}
