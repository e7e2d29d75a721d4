package e2e

import (
	"fmt"
	"os"
	"testing"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"sigs.k8s.io/cluster-api/test/journey"
)

// Two consecutive minors, of which there are node images (NODE_VERSIONS in the Makefile).
const (
	older = "v1.35.4"
	newer = "v1.36.3"
)

// shared is the management cluster of this package's tests, featured that of tests with features that are off by default. TestMain cannot
// pass them to the tests otherwise.
var (
	shared   = journey.Shared{Infrastructure: "docker"}
	featured = journey.Shared{Infrastructure: "docker", Like: &shared, Variables: journey.Features()}
)

// requested is the environment variable that make e2e sets. These tests take too long to run by accident.
const requested = "CAPI_E2E"

func TestMain(m *testing.M) {
	if os.Getenv(requested) == "" {
		fmt.Printf("end-to-end tests on real machines are skipped; run make e2e, or set %s=1\n", requested)
		return
	}
	ctrllog.SetLogger(logr.Discard())
	shared.Main(m, &featured)
}
