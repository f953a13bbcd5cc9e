package testkit

import (
	"fmt"
	"net/http"
	"os"
	"testing"

	"github.com/selvage-mesh/selvage/adapter/shim/shimtest"
)

// The test binary is the run shim too, as the program is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "serve-http" {
		serveHTTP()
	}
	shimtest.Main(m)
}

// serveHTTP is a service of a workspace: it answers on the port that it is given.
func serveHTTP() {
	fmt.Println("serving on " + os.Getenv("PORT"))
	err := http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"),
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "here") }))
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
