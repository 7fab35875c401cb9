// A schema registry in memory for the engine tests: franz-go's stand-in for Confluent's, on the address given.
package main

import (
	"log"
	"net/http"
	"os"

	"github.com/twmb/franz-go/pkg/sr/srfake"
)

func main() {
	log.Fatal(http.ListenAndServe(os.Args[1], srfake.NewRegistry().Handler()))
}
