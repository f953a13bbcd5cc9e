// Command openapi prints the description of the API, as every node serves it.
package main

import (
	"fmt"
	"os"

	"github.com/selvage-mesh/selvage/api/routes"
)

func main() {
	doc, err := routes.Describe("board")
	if err == nil {
		_, err = os.Stdout.Write(doc)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "openapi:", err)
		os.Exit(1)
	}
}
