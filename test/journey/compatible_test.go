package journey

import (
	"testing"

	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// TestTemplateOfV17 generates a Cluster from the unmodified template of Cluster API v1.7, upgrades and deletes it, whose machines take
// minutes. Each change runs TestDocumentedTemplate, and creates the objects of this template without machines (TestPublishedClasses).
func TestTemplateOfV17(t *testing.T) {
	testenv.Soak(t)
	t.Parallel()
	w, template := referenceTemplate(t)
	w.Class(template)
	c := w.Subject(w.Generated(template, "original", older, 1, 1))
	upgrade(c, 1, 1)
	checkKubeconfig(t, c)
	c.Gone()
}
