package step

import (
	"context"
	"errors"
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
)

// addable is a controller that counts how often it is added, and cannot be added if err is set.
type addable struct {
	err   error
	added int
}

// Add implements Addable.
func (a *addable) Add(context.Context, ctrl.Manager, Clients) (controller.Controller, error) {
	a.added++
	return nil, a.err
}

func TestAdd(t *testing.T) {
	index, name := errors.New("the field is indexed twice"), errors.New("the name is taken")
	for _, tt := range []struct {
		reason      string
		controllers []*addable
		want        []error
	}{
		{reason: "no controllers"},
		{reason: "all can be added", controllers: []*addable{{}, {}}},
		{reason: "every error is returned", controllers: []*addable{{err: index}, {}, {err: name}}, want: []error{index, name}},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			var all []Addable
			for _, c := range tt.controllers {
				all = append(all, c)
			}
			err := Add(t.Context(), nil, Clients{}, all...)
			if (err == nil) != (len(tt.want) == 0) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
			for _, want := range tt.want {
				if !errors.Is(err, want) {
					t.Errorf("error %v, want %v", err, want)
				}
			}
			for i, c := range tt.controllers {
				if c.added != 1 {
					t.Errorf("controller %d is added %d times", i, c.added)
				}
			}
		})
	}
}
