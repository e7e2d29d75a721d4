package script

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sigs.k8s.io/cluster-api/test/fault/request"
)

func patch(home, name string) request.Request {
	return request.Request{Manager: "m", Home: home, Namespace: home, Verb: "patch", Resource: "machines", Name: name}
}

func TestFaultText(t *testing.T) {
	for _, text := range []string{"m:patch:machines#3=kill-after", "m:create:@secrets#1=black-hole(5s)", "m:patch:machines#3=freeze(2s)>m2:watch:machines+2", "m:patch:machines#1=unreachable>:connect:@"} {
		f, err := Parse(text)
		if err != nil || f.String() != text {
			t.Errorf("%s is read as %s, %v", text, f, err)
		}
	}
	for _, text := range []string{"", "m:patch:machines=kill-after", "m:patch:machines#0=kill-after", "m:patch#1=kill-after", "m:patch:machines#1=stall(x)", "m:patch:machines#1=explode"} {
		if f, err := Parse(text); err == nil {
			t.Errorf("%q is read as %s", text, f)
		}
	}
}

func TestTheNthRequestSuffers(t *testing.T) {
	s := New("n", Fault{When: request.Kind{Manager: "m", Verb: "patch", Resource: "machines"}, Nth: 2, Do: KillAfter})
	if _, f := s.Next(patch("n", "early")); f != nil {
		t.Errorf("before the script is armed: %v", f)
	}
	s.Arm()
	var happened []string
	for _, r := range []request.Request{patch("n", "1"), patch("other", "x"), patch("n", "2"), patch("n", "3")} {
		record, f := s.Next(r)
		if f != nil {
			happened = append(happened, r.Name)
		}
		s.Answered(record, 200)
	}
	if diff := cmp.Diff([]string{"2"}, happened); diff != "" {
		t.Errorf("what suffered (-want +got):\n%s", diff)
	}
	var written []Record
	for _, r := range s.Records() {
		r.At, r.Fault = time.Time{}, nil
		written = append(written, r)
	}
	want := []Record{{Request: patch("n", "1"), Nth: 1, Code: 200}, {Request: patch("n", "2"), Nth: 2, Code: 200}, {Request: patch("n", "3"), Nth: 3, Code: 200}}
	if diff := cmp.Diff(want, written); diff != "" {
		t.Errorf("the records (-want +got):\n%s", diff)
	}
	if s.Happened() != 1 {
		t.Errorf("%d faults happened", s.Happened())
	}
}

func TestStage(t *testing.T) {
	var stage Stage
	parked, active := New("a"), New("b")
	stage.Play(parked)
	stage.Play(active)
	for home, want := range map[string]*Script{"a": parked, "b": active, "": active, "c": nil} {
		if got := stage.Find(home); got != want {
			t.Errorf("for %q there is %p, want %p", home, got, want)
		}
	}
	stage.Leave(active)
	if stage.Find("") != nil || stage.Find("b") != nil {
		t.Error("a script that has left still plays")
	}
}
