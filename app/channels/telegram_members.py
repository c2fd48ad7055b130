"""The members of Telegram's message objects that hold no content written by a person.

See https://core.telegram.org/bots/api#message.
"""

from __future__ import annotations

# Members of service messages, which report an event in the chat. Nobody has written these messages.
SERVICE = frozenset(
    {
        *("new_chat_members", "left_chat_member", "new_chat_title", "new_chat_photo", "delete_chat_photo"),
        *("group_chat_created", "supergroup_chat_created", "channel_chat_created", "migrate_to_chat_id"),
        *("migrate_from_chat_id", "pinned_message", "message_auto_delete_timer_changed", "chat_background_set"),
        *("write_access_allowed", "connected_website", "proximity_alert_triggered", "boost_added"),
        *("forum_topic_created", "forum_topic_edited", "forum_topic_closed", "forum_topic_reopened"),
        *("general_forum_topic_hidden", "general_forum_topic_unhidden", "giveaway_created", "giveaway_completed"),
        *("video_chat_scheduled", "video_chat_started", "video_chat_ended", "video_chat_participants_invited"),
        *("paid_message_price_changed", "direct_message_price_changed"),
    }
)
# Members that say who sent a message, when, and how it looks. Also the text and the caption, which `telegram_updates`
# reads.
ENVELOPE = frozenset(
    {
        *("message_id", "message_thread_id", "from", "sender_chat", "sender_boost_count", "sender_business_bot"),
        *("date", "edit_date", "business_connection_id", "chat", "forward_origin", "forward_from", "forward_date"),
        *("forward_from_chat", "forward_from_message_id", "forward_signature", "forward_sender_name", "via_bot"),
        *("is_topic_message", "is_automatic_forward", "is_from_offline", "is_paid_post", "paid_star_count"),
        *("reply_to_message", "reply_to_story", "reply_to_checklist_task_id", "external_reply", "quote"),
        *("has_protected_content", "has_media_spoiler", "show_caption_above_media", "media_group_id"),
        *("author_signature", "text", "entities", "caption", "caption_entities", "link_preview_options"),
        *("effect_id", "reply_markup", "direct_messages_topic", "suggested_post_info"),
    }
)
