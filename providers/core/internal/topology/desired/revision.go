package desired

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/names"
)

// setRevisions makes the three objects of a MachinePool change as one: bootstrap config and infrastructure get the hashes of their
// desired specs as revisions, and the MachinePool refers to them in the same write as it gets its version. Machines that are replaced
// between these writes would be replaced again after them.
func (w *Workers) setRevisions() error {
	for _, part := range []struct {
		object     *unstructured.Unstructured
		annotation string
	}{
		{w.Bootstrap, clusterv1.MachinePoolBootstrapRevisionAnnotation},
		{w.Infrastructure, clusterv1.MachinePoolInfrastructureRevisionAnnotation},
	} {
		hash, err := names.ContentHash(part.object)
		if err != nil {
			return err
		}
		revision := hash[:revisionLength]
		annotate(part.object, clusterv1.MachinePoolRevisionAnnotation, revision)
		annotate(w.Pool, part.annotation, revision)
	}
	return nil
}

// revisionLength is the number of characters of a revision: the next one only has to be another one.
const revisionLength = 16

func annotate(object client.Object, key, value string) {
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	object.SetAnnotations(annotations)
}
