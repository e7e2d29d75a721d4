package apiversion

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// BenchmarkEvent is the time from the content of an event to the object that an informer keeps.
func BenchmarkEvent(b *testing.B) {
	stored := olderMachine()
	stored.SetGroupVersionKind(clusterv1beta1.GroupVersion.WithKind("Machine"))
	content, err := json.Marshal(stored)
	if err != nil {
		b.Fatal(err)
	}
	w, tr, _ := newListerWatcher(b)
	decoder := serializer.NewCodecFactory(tr.scheme).UniversalDeserializer()
	for name, convert := range map[string]bool{"stored version": false, "other version": true} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				obj, _, err := decoder.Decode(content, nil, nil)
				if err != nil {
					b.Fatal(err)
				}
				if !convert {
					continue
				}
				e, _ := w.event(b.Context(), tr, watch.Event{Type: watch.Modified, Object: obj})
				if _, ok := e.Object.(*clusterv1.Machine); !ok {
					b.Fatalf("got %T", e.Object)
				}
			}
		})
	}
}

// BenchmarkLookup is what each request for an object in the stored version costs.
func BenchmarkLookup(b *testing.B) {
	tr := newTranslation(b, newer, older)
	stored := olderMachine()
	b.ReportAllocs()
	for b.Loop() {
		if t, err := tr.translation(b.Context(), stored); t != nil || err != nil {
			b.Fatal(t, err)
		}
	}
}
