package mesh_test

import (
	"context"
	"testing"

	"github.com/selvage-mesh/selvage/adapter"
	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/identity"
)

func TestNodesAreLookedAtForWhatTheyOffer(t *testing.T) {
	h := apitest.NewHarness(t, func(c *api.Config) {
		c.Offers = func(_ context.Context, _ identity.NodeID, look adapter.Look) ([]adapter.Offer, error) {
			return []adapter.Offer{{Kind: "server", Name: "Ollama", Provider: "ollama", BaseURL: "http://127.0.0.1:11434/v1",
				Models: []string{"qwen3"}, Tried: look.Try}}, nil
		}
	})
	h.Call("POST", "/api/instance/offers", `{}`).Want(t, 200, `"here":true`).Want(t, 200, `"models":["qwen3"]`)
	h.Call("POST", "/api/instance/offers", `{"port":-1}`).Want(t, 400, "port")
	h.Call("POST", "/api/instance/offers", `{"try":true,"port":11436}`).Want(t, 200, `"tried":true`)
	apitest.NewHarness(t).Call("POST", "/api/instance/offers", `{}`).Want(t, 503, "can not look")
}
