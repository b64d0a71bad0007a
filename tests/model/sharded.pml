// SPDX-License-Identifier: BSD-3-Clause
// match/shards.hpp and match/sharded_matcher.hpp: two shards, key k in shard k; the gate;
// wildcard receives behind the gate lock; numbers of receives from blocks, of messages
// from one counter. BROKEN looks at the gate only before it takes a shard's lock.
// BROKEN_ORDER leaves shards their block of numbers when a wildcard receive is posted.
#define RECEIVES 3
#define MESSAGES 3
#define NONE 9
#include "rules.pml"

bit gate_lock, shut;
bit shard_lock[2];
List posted[2], unexpected[2], wild;
byte block[2];            // receives of a shard are numbered from it
byte number[RECEIVES];    // block that the receive's number is in
byte stamp[MESSAGES];
byte next_block, floor, next_stamp;

inline lock(l) { atomic { !l -> l = 1 } }
inline unlock(l) { l = 0 }

// The shard s to itself, or all of them. Searching is one step, what follows another:
// if two were inside, the checks would see it.
inline post_exact(r, s) {
  found = NONE;
  d_step {
    if
    :: unexpected[s].length > 0 -> found = unexpected[s].item[0]
    :: else -> skip
    fi
  }
  if
  :: found != NONE -> d_step { remove(unexpected[s], 0); match(r, found) }
  :: else ->
     if
     :: block[s] < floor -> d_step { block[s] = next_block; next_block++ }
     :: else -> skip
     fi;
     d_step { number[r] = block[s]; append(posted[s], r); add(waiting_receives, r) }
  fi
}

inline arrive_open(m, s) {
  found = NONE;
  d_step {
    if
    :: posted[s].length > 0 -> found = posted[s].item[0]
    :: else -> skip
    fi
  }
  if
  :: found != NONE -> d_step { remove(posted[s], 0); match(found, m) }
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
    if
    :: posted[s].length > 0 && (wild.length == 0 ||
         number[posted[s].item[0]] < number[wild.item[0]]) -> from = s
    :: wild.length > 0 && (posted[s].length == 0 ||
         number[wild.item[0]] < number[posted[s].item[0]]) -> from = WILD
    :: else -> skip
    fi
  }
  if
  :: from == s -> d_step { found = posted[s].item[0]; remove(posted[s], 0); match(found, m) }
  :: from == WILD -> d_step { found = wild.item[0]; remove(wild, 0); match(found, m) }
  :: else ->
     d_step { stamp[m] = next_stamp; next_stamp++ }
     d_step { append(unexpected[s], m); add(waiting_messages, m) }
  fi
}

// What Shards::visit() does around a call: the lock of the shard, the gate, the call.
inline enter(s) {
  do
  :: shut -> open = 0; break
  :: !shut ->
     lock(shard_lock[s]);
#ifndef BROKEN
     if
     :: shut -> unlock(shard_lock[s])
     :: else -> open = 1; break
     fi
#else
     open = 1; break
#endif
  od
}

inline post(r) {
  begin_post(r);
  if
  :: receive_key[r] == WILD -> close(); post_wild(r); reopen()
  :: else ->
     enter(receive_key[r]);
     if
     :: open -> post_exact(r, receive_key[r]); unlock(shard_lock[receive_key[r]])
     :: else -> close(); post_exact(r, receive_key[r]); reopen()
     fi
  fi;
  end_post(r)
}

inline arrive(m) {
  begin_arrival(m);
  enter(message_key[m]);
  if
  :: open -> arrive_open(m, message_key[m]); unlock(shard_lock[message_key[m]])
  :: else -> close(); arrive_closed(m, message_key[m]); reopen()
  fi;
  end_arrival(m)
}

proctype First() { byte found, from; bit open; OPERATIONS_1; ended++ }
proctype Second() { byte found, from; bit open; OPERATIONS_2; ended++ }
proctype Third() { byte found, from; bit open; OPERATIONS_3; ended++ }

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
