package broker

import "context"

// withoutStrays parts the rooms of a look from those that were made for another instance. On a server where anybody may make rooms,
// somebody may have copied the description and the id of a room that stands elsewhere; and an address
// that was another instance's at that moment gets a room that nobody will be sent to. Neither says anything of the
// directory: strays count as load, as the rooms of others do.
func (l Look) withoutStrays(instance string) (Look, []RoomSeen) {
	var ours, strays []RoomSeen
	for _, r := range l.Rooms {
		if r.Instance == "" || r.Instance == instance {
			ours = append(ours, r)
			continue
		}
		strays = append(strays, r)
		l.OtherRooms++
		l.OtherPeople += r.Publishers
	}
	l.Rooms = ours
	return l, strays
}

// clearStrays destroys the strays that were made with our secret and in which nobody is.
func (s *Service) clearStrays(ctx context.Context, at Target, strays []RoomSeen) {
	for i, r := range strays {
		if i == maxFollow {
			return
		}
		s.clear(ctx, at, RoomRef{r.Room, r.Epoch}, "made for "+r.Instance, DestroyOptions{OnlyVacant: true})
	}
}
