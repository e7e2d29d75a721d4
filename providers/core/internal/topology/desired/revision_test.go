package desired

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// TestRevisions gives each object of a MachinePool the revision of its own spec, and the MachinePool both.
func TestRevisions(t *testing.T) {
	type revisions struct{ bootstrap, infrastructure string }
	of := func(bootstrap, infrastructure string) revisions {
		p := &Workers{
			WorkersObject: WorkersObject{Pool: &clusterv1.MachinePool{}},
			Bootstrap:     aTemplate("Bootstrap", "b", bootstrap), Infrastructure: aTemplate("Pool", "i", infrastructure),
		}
		if err := p.setRevisions(); err != nil {
			t.Fatal(err)
		}
		for _, pair := range []struct {
			object     client.Object
			annotation string
		}{
			{p.Bootstrap, clusterv1.MachinePoolBootstrapRevisionAnnotation}, {p.Infrastructure, clusterv1.MachinePoolInfrastructureRevisionAnnotation},
		} {
			own, referred := pair.object.GetAnnotations()[clusterv1.MachinePoolRevisionAnnotation], p.Pool.Annotations[pair.annotation]
			if own == "" || own != referred {
				t.Errorf("%T has revision %q, and the MachinePool refers to %q", pair.object, own, referred)
			}
		}
		return revisions{p.Bootstrap.GetAnnotations()[clusterv1.MachinePoolRevisionAnnotation], p.Infrastructure.GetAnnotations()[clusterv1.MachinePoolRevisionAnnotation]}
	}
	base, bootstrap, infrastructure := of("1", "1"), of("2", "1"), of("1", "2")
	if base != of("1", "1") {
		t.Error("the same specs have other revisions")
	}
	if base.bootstrap == bootstrap.bootstrap || base.infrastructure != bootstrap.infrastructure {
		t.Errorf("another bootstrap config: %+v after %+v", bootstrap, base)
	}
	if base.infrastructure == infrastructure.infrastructure || base.bootstrap != infrastructure.bootstrap {
		t.Errorf("other infrastructure: %+v after %+v", infrastructure, base)
	}
}
