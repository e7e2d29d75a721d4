package variables

import (
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// TestBook validates the variables with rules that the page of the book has.
func TestBook(t *testing.T) {
	page, err := os.ReadFile("../../../../../docs/book/clusterclass.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "```yaml\nvariables:\n")
	block, _, closed := strings.Cut(rest, "```")
	if !found || !closed || !strings.Contains(block, rulesField) {
		t.Fatal("the page has no variables with rules")
	}
	errs := ValidateDefinitions(t.Context(), parse[[]clusterv1.ClusterClassVariable](t, block), field.NewPath("variables"))
	if len(errs) > 0 {
		t.Error(errs.ToAggregate())
	}
}
