package journey

import (
	"flag"
	"os"
	"testing"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// TestMain runs many journeys in parallel, regardless of the number of processors: they spend most of their time waiting. More would make 2
// cores so busy that steps take minutes.
func TestMain(m *testing.M) {
	flag.Parse()
	ctrllog.SetLogger(logr.Discard())
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		if err := flag.Set("test.parallel", "4"); err != nil {
			println(err.Error())
			os.Exit(1)
		}
	}
	testenv.Main(m, &shared.server, &extensible.server)
}

// forEachTemplate runs a journey with the project's own template and, in soak tests, with the unmodified one of Cluster API v1.7 if it
// is available.
func forEachTemplate(t *testing.T, journey func(*testing.T, *World, Template)) {
	t.Helper()
	t.Run("own template", func(t *testing.T) {
		t.Parallel()
		w := shared.World(t)
		journey(t, w, w.Tools.ProjectTemplate())
	})
	t.Run("template of v1.7", func(t *testing.T) {
		testenv.Soak(t)
		t.Parallel()
		w, template := referenceTemplate(t)
		journey(t, w, template)
	})
}

// referenceTemplate returns the unmodified template of Cluster API v1.7. Its machines take their time to start.
func referenceTemplate(t *testing.T) (*World, Template) {
	t.Helper()
	w := shared.World(t)
	template, exists := w.Tools.ReferenceTemplate()
	if !exists {
		t.Skipf("%s does not exist", template.Class)
	}
	w.Patient()
	return w, template
}
