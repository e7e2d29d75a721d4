package journey

import "testing"

// TestTemplateOfV17 generates a Cluster from the unmodified template of Cluster API v1.7, upgrades and deletes it. It is one of the first
// journeys that start, because the machines of this template take their time.
func TestTemplateOfV17(t *testing.T) {
	t.Parallel()
	w, template := referenceTemplate(t)
	w.Class(template)
	c := w.Subject(w.Generated(template, "original", older, 1, 1))
	upgrade(c, 1, 1)
	checkKubeconfig(t, c)
	c.Gone()
}
