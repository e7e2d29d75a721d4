package etcd

import (
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Members that are accepted have valid names and are sorted by ID, their number is limited, and they can be found by name and
// ID.
func FuzzMembers(f *testing.F) {
	many := make([]*etcdserverpb.Member, maxMembers+1)
	for i := range many {
		many[i] = &etcdserverpb.Member{ID: uint64(i), Name: "n"}
	}
	for _, list := range [][]*etcdserverpb.Member{
		nil, {{ID: 2, Name: "cp-1", PeerURLs: []string{"https://10.0.0.2:2380"}}, {ID: 1, Name: "cp-0", ClientURLs: []string{"https://10.0.0.1:2379"}}}, {{ID: 1, Name: "", IsLearner: true}, {ID: 1}}, {{ID: 1, Name: "evil\nname"}}, {{ID: 1<<64 - 1, Name: "\u00e9"}}, many,
	} {
		raw, err := proto.Marshal(protoadapt.MessageV2Of(&etcdserverpb.MemberListResponse{Header: &etcdserverpb.ResponseHeader{MemberId: 1}, Members: list}))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw, "cp-0")
	}
	f.Add([]byte("\xff\xff"), "")
	f.Fuzz(func(t *testing.T, raw []byte, node string) {
		var response etcdserverpb.MemberListResponse
		if len(raw) > maxResponse/16 || proto.Unmarshal(raw, protoadapt.MessageV2Of(&response)) != nil {
			t.Skip("gRPC rejects it")
		}
		all, err := members(response.Members)
		if err != nil {
			return
		}
		if len(all) > maxMembers || len(all) != len(response.Members) {
			t.Errorf("%d members of %d", len(all), len(response.Members))
		}
		ids := map[uint64]bool{}
		for i, m := range all {
			if m.Name != "" && len(validation.IsDNS1123Subdomain(m.Name)) > 0 {
				t.Errorf("member %q", m.Name)
			}
			if i > 0 && all[i-1].ID > m.ID {
				t.Errorf("member %x after %x", m.ID, all[i-1].ID)
			}
			if found, ok := ByID(all, m.ID); !ok || found.ID != m.ID {
				t.Errorf("member %x is not found: %+v", m.ID, found)
			}
			if found, ok := ByName(all, m.Name); ok != (m.Name != "") || found.Name != m.Name {
				t.Errorf("member %q is not found: %+v", m.Name, found)
			}
			ids[m.ID] = true
		}
		if id := identify(response.Header, node, all); id != response.Header.GetMemberId() && !ids[id] && id != 0 {
			t.Errorf("%x responded, which is no member", id)
		}
	})
}
