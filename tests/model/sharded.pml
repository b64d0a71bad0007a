// SPDX-License-Identifier: BSD-3-Clause
// match/shards.hpp, shard_store.hpp and sharded_matcher.hpp: two shards, key k in shard k; the
// gate; wildcard receives behind the gate lock; numbers of receives from blocks, of messages
// from one counter. CHANGE once lets all keys, and with them the wildcard, have shard 0, as
// if they had one tag and shards were chosen by that from now on.
//
// BROKEN looks at the gate only before it takes a shard's lock. BROKEN_ORDER leaves shards
// their block of numbers when a wildcard receive is posted. BROKEN_CHANGE sees only whether
// the gate is shut, not whether shards are chosen as before. BROKEN_CANCEL takes a wildcard
// receive out without the gate lock.
#define RECEIVES 3
#define MESSAGES 3
#define NONE 9
#include "rules.pml"

bit gate_lock, shut, by_tag;
bit shard_lock[2];
List posted[2], unexpected[2], wild;
byte block[2];            // receives of a shard are numbered from it
byte number[RECEIVES];    // block that the receive's number is in
byte stamp[MESSAGES];
byte next_block, floor, next_stamp;

inline lock(l) { atomic { !l -> l = 1 } }
inline unlock(l) { l = 0 }

#define shard_of(key) (by_tag || key == WILD -> 0 : key)
#define has_one_shard(key) (by_tag || key != WILD)

// place: of the first that the receive or the message meets, in one step of its own.
inline find_message(list, r) {
  place = 0;
  do
  :: place == list.length -> place = NONE; break
  :: place < list.length && accepts(r, list.item[place]) -> break
  :: else -> place++
  od
}
inline find_receive(list, m) {
  place = 0;
  do
  :: place == list.length -> place = NONE; break
  :: place < list.length && accepts(list.item[place], m) -> break
  :: else -> place++
  od
}

// The shard s to itself, or all of them. Searching is one step, what follows another:
// if two were inside, the checks would see it.
inline post_in(r, s) {
  d_step { find_message(unexpected[s], r) }
  if
  :: place != NONE ->
     d_step { found = unexpected[s].item[place]; remove(unexpected[s], place); match(r, found) }
  :: else ->
     if
     :: block[s] < floor -> d_step { block[s] = next_block; next_block++ }
     :: else -> skip
     fi;
     d_step { number[r] = block[s]; append(posted[s], r); add(waiting_receives, r) }
  fi
}

inline arrive_open(m, s) {
  d_step { find_receive(posted[s], m) }
  if
  :: place != NONE ->
     d_step { found = posted[s].item[place]; remove(posted[s], place); match(found, m) }
  :: else ->
     d_step { stamp[m] = next_stamp; next_stamp++ }
     d_step { append(unexpected[s], m); add(waiting_messages, m) }
  fi
}

inline close() {
  lock(gate_lock);
  if
  :: shut -> skip
  :: else -> shut = 1; !shard_lock[0]; !shard_lock[1]
  fi
}

inline reopen() {
  if
  :: wild.length == 0 -> shut = 0
  :: else -> skip
  fi;
  unlock(gate_lock)
}

inline post_wild(r) {
  found = NONE;
  d_step {
    if
    :: unexpected[0].length > 0 && (unexpected[1].length == 0 ||
         stamp[unexpected[0].item[0]] < stamp[unexpected[1].item[0]]) ->
       found = unexpected[0].item[0]; from = 0
    :: unexpected[1].length > 0 && (unexpected[0].length == 0 ||
         stamp[unexpected[1].item[0]] < stamp[unexpected[0].item[0]]) ->
       found = unexpected[1].item[0]; from = 1
    :: else -> skip
    fi
  }
  if
  :: found != NONE -> d_step { remove(unexpected[from], 0); match(r, found) }
  :: else ->
     d_step {
       number[r] = next_block; next_block++;
#ifndef BROKEN_ORDER
       floor = next_block;
#endif
       append(wild, r); add(waiting_receives, r)
     }
  fi
}

inline arrive_closed(m, s) {
  d_step {
    from = NONE;
    find_receive(posted[s], m);
    if
    :: place != NONE && (wild.length == 0 ||
         number[posted[s].item[place]] < number[wild.item[0]]) -> from = s
    :: wild.length > 0 && (place == NONE ||
         number[wild.item[0]] < number[posted[s].item[place]]) -> from = WILD
    :: else -> skip
    fi
  }
  if
  :: from == s ->
     d_step { found = posted[s].item[place]; remove(posted[s], place); match(found, m) }
  :: from == WILD -> d_step { found = wild.item[0]; remove(wild, 0); match(found, m) }
  :: else ->
     d_step { stamp[m] = next_stamp; next_stamp++ }
     d_step { append(unexpected[s], m); add(waiting_messages, m) }
  fi
}

// What Shards::visit() does around a call: the lock of the shard, the gate, the call.
inline enter(key) {
  do
  :: atomic { (shut || !has_one_shard(key)) -> open = 0; break }
  :: atomic { (!shut && has_one_shard(key)) -> s = shard_of(key); before = by_tag };
     lock(shard_lock[s]);
#ifndef BROKEN
     if
#ifndef BROKEN_CHANGE
     :: (shut || by_tag != before) -> unlock(shard_lock[s])
#else
     :: shut -> unlock(shard_lock[s])
#endif
     :: else -> open = 1; break
     fi
#else
     open = 1; break
#endif
  od
}

inline post(r) {
  begin_post(r);
  enter(receive_key[r]);
  if
  :: open -> post_in(r, s); unlock(shard_lock[s])
  :: else ->
     close();
     if
     :: has_one_shard(receive_key[r]) -> s = shard_of(receive_key[r]); post_in(r, s)
     :: else -> post_wild(r)
     fi;
     reopen()
  fi;
  end_post(r)
}

inline arrive(m) {
  begin_arrival(m);
  enter(message_key[m]);
  if
  :: open -> arrive_open(m, s); unlock(shard_lock[s])
  :: else -> close(); s = shard_of(message_key[m]); arrive_closed(m, s); reopen()
  fi;
  end_arrival(m)
}

// Receive r out of the list, if it is there; finding it is a step of its own, too.
inline take_out(list, r) {
  d_step {
    place = 0;
    do
    :: place == list.length -> place = NONE; break
    :: place < list.length && list.item[place] == r -> break
    :: else -> place++
    od
  }
  if
  :: place != NONE ->
     d_step { assert(list.item[place] == r); remove(list, place); cancel_waiting(r) }
  :: else -> skip
  fi
}

inline cancel(r) {
  enter(receive_key[r]);
  if
  :: open -> s = shard_of(receive_key[r]); take_out(posted[s], r); unlock(shard_lock[s])
  :: else ->
#ifndef BROKEN_CANCEL
     close();
#endif
     if
     :: has_one_shard(receive_key[r]) -> s = shard_of(receive_key[r]); take_out(posted[s], r)
     :: else -> take_out(wild, r)
     fi;
#ifndef BROKEN_CANCEL
     reopen()
#endif
  fi;
  end_cancel(r)
}

// ShardStore::redistribute(): what waits goes to where it belongs from now on, oldest first.
inline take_oldest(list, age, other, other_age, to) {
  if
  :: other.length == 0 || (list.length > 0 && age <= other_age) ->
     append(to, list.item[0]); remove(list, 0)
  :: else -> append(to, other.item[0]); remove(other, 0)
  fi
}
#ifdef CHANGE
active proctype Changer() {
  List all;
  close();
  d_step {
    do
    :: posted[1].length + wild.length > 0 ->
       take_oldest(posted[1], number[posted[1].item[0]], wild, number[wild.item[0]], all)
    :: else -> break
    od;
    do
    :: posted[0].length + all.length > 0 ->
       take_oldest(posted[0], number[posted[0].item[0]], all, number[all.item[0]], posted[1])
    :: else -> break
    od;
    do
    :: posted[1].length > 0 -> append(posted[0], posted[1].item[0]); remove(posted[1], 0)
    :: else -> break
    od;
    do
    :: unexpected[0].length + unexpected[1].length > 0 ->
       take_oldest(unexpected[0], stamp[unexpected[0].item[0]], unexpected[1],
                   stamp[unexpected[1].item[0]], all)
    :: else -> break
    od;
    do
    :: all.length > 0 -> append(unexpected[0], all.item[0]); remove(all, 0)
    :: else -> break
    od;
    block[0] = next_block; next_block++;
    by_tag = 1
  }
  reopen()
}
#endif

proctype First() { byte found, from, place, s; bit open, before; OPERATIONS_1; ended++ }
proctype Second() { byte found, from, place, s; bit open, before; OPERATIONS_2; ended++ }
proctype Third() { byte found, from, place, s; bit open, before; OPERATIONS_3; ended++ }

init {
  atomic {
    receive_key[0] = 0; receive_key[1] = WILD; receive_key[2] = 0;
    message_key[0] = 0; message_key[1] = 1; message_key[2] = 0;
    next_block = 2; block[0] = 0; block[1] = 1;
    run First(); run Second(); run Third()
  }
  ended == 3;
  d_step { rules() }
}
