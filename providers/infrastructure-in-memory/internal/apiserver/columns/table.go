package columns

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/clock"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
)

// Tables prints objects as rows for "kubectl get".
type Tables struct {
	clock    clock.PassiveClock
	byKind   map[schema.GroupVersionKind]table
	fallback table
}

// table prints the objects of one kind.
type table struct {
	columns []metav1.TableColumnDefinition
	row     func(o *store.Object, now time.Time) ([]any, error)
}

// columns returns a table's columns. Those with a name that starts with + are only for "-o wide".
func columns(names ...string) []metav1.TableColumnDefinition {
	definitions := make([]metav1.TableColumnDefinition, 0, len(names))
	for _, name := range names {
		wide := strings.HasPrefix(name, "+")
		d := metav1.TableColumnDefinition{Name: strings.TrimPrefix(name, "+"), Type: "string"}
		if d.Name == "Name" {
			d.Format = "name"
		}
		if wide {
			d.Priority = 1
		}
		definitions = append(definitions, d)
	}
	return definitions
}

// printer returns the table of a kind by its Go type.
func printer[T any](columns []metav1.TableColumnDefinition, row func(*T, time.Time) []any) table {
	return table{columns: columns, row: func(o *store.Object, now time.Time) ([]any, error) {
		typed := new(T)
		if err := o.Into(typed); err != nil {
			return nil, err
		}
		return row(typed, now), nil
	}}
}

// New returns the tables of all kinds.
func New(c clock.PassiveClock) *Tables {
	return &Tables{
		clock:  c,
		byKind: printers(),
		fallback: printer(columns("Name", "Age"), func(o *metav1.PartialObjectMetadata, now time.Time) []any {
			return []any{o.Name, age(o, now)}
		}),
	}
}

func (t *Tables) of(kind schema.GroupVersionKind) table {
	if found, ok := t.byKind[kind]; ok {
		return found
	}
	return t.fallback
}

// Encode returns a table of objects. include is None, Metadata (the default) or Object.
func (t *Tables) Encode(
	kind schema.GroupVersionKind, stored []*store.Object, meta metav1.ListMeta, include string, withColumns bool,
) ([]byte, error) {
	as := t.of(kind)
	result := metav1.Table{
		TypeMeta: metav1.TypeMeta{Kind: "Table", APIVersion: metav1.SchemeGroupVersion.String()},
		ListMeta: meta,
		Rows:     make([]metav1.TableRow, 0, len(stored)),
	}
	if withColumns {
		result.ColumnDefinitions = as.columns
	}
	now := t.clock.Now()
	for _, s := range stored {
		cells, err := as.row(s, now)
		if err != nil {
			return nil, err
		}
		row := metav1.TableRow{Cells: cells}
		switch include {
		case string(metav1.IncludeNone):
		case string(metav1.IncludeObject):
			row.Object = runtime.RawExtension{Raw: s.Raw()}
		default:
			if row.Object.Raw, err = Metadata(s); err != nil {
				return nil, err
			}
		}
		result.Rows = append(result.Rows, row)
	}
	return json.Marshal(result)
}

// Bookmark returns a table without rows, for a bookmark.
func (t *Tables) Bookmark(kind schema.GroupVersionKind, metadata map[string]any) ([]byte, error) {
	return json.Marshal(map[string]any{
		"kind": "Table", "apiVersion": metav1.SchemeGroupVersion.String(), "metadata": metadata,
		"columnDefinitions": t.of(kind).columns, "rows": []any{},
	})
}

func age(o metav1.Object, now time.Time) string {
	return since(o.GetCreationTimestamp(), now)
}

func since(t metav1.Time, now time.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(t.Time))
}

func orNone(s string) string {
	if s == "" {
		return "<none>"
	}
	return s
}

// Metadata returns an object as PartialObjectMetadata, encoded as JSON.
func Metadata(stored *store.Object) ([]byte, error) {
	var parts struct {
		Metadata json.RawMessage `json:"metadata"`
	}
	if err := json.Unmarshal(stored.Raw(), &parts); err != nil {
		return nil, fmt.Errorf("decode %s: %w", stored.Key, err)
	}
	return fmt.Appendf(nil, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":%s}`, parts.Metadata), nil
}
